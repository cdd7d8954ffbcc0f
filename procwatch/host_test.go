package procwatch

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"
)

// helperHost is a program that has a child, prints what it says, and dies in the given way when
// the child has said its first line. args: how, containment, temp dir, grace in ms, then the
// child's argv. "churn" starts one after the other until it is killed.
func helperHost(args []string) int {
	grace, _ := strconv.Atoi(args[3])
	first := make(chan struct{}, 1024)
	if args[0] == "watch" {
		return watchfulHost(args[2], args[4:])
	}
	spec := Spec{
		Argv: args[4:], Env: os.Environ(), Containment: Containment(args[1]), TempDir: args[2],
		Grace: time.Duration(grace) * time.Millisecond,
		Sink: func(l Line) {
			fmt.Printf("%s\n", l.Text)
			first <- struct{}{}
		},
	}
	for args[0] == "churn" {
		p, err := Start(context.Background(), spec)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		<-first
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, _ = p.Stop(ctx, "")
	}
	p, err := Start(context.Background(), spec)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("leader", p.PID())
	<-first
	switch args[0] {
	case "exit":
		os.Exit(5)
	case "panic":
		panic("on purpose")
	case "fatal":
		log.Fatal("on purpose")
	}
	hang()
	return 0
}

// watchfulHost says a line for every answer of a child that it watches strictly, and "dead" at the end.
func watchfulHost(path string, argv []string) int {
	ask := echoProbe(path)
	p, err := Start(context.Background(), Spec{
		Argv: argv, Prober: ask, Containment: Group,
		Liveness: Liveness{Every: time.Millisecond, Timeout: 2 * time.Second, Misses: 1, Probe: func(ctx context.Context) error {
			err := ask(ctx)
			fmt.Println("answer", err)
			return err
		}},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	<-p.Done()
	e, _ := p.Exit()
	fmt.Println("dead", e)
	return 0
}
