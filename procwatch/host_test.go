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
