// Command client is wevalr's client of an env-server alone, to compare it with verifiers' EnvClient: see
// bench.py. It awaits each episode, checks its `ok` and drops it.
//
//	client ADDRESS BASE_URL ROLLOUTS INFLIGHT
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/host/wire"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal("client: ", err)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return errors.New("want ADDRESS BASE_URL ROLLOUTS INFLIGHT")
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	inflight, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := server.Start(ctx, server.Spec{Address: args[0]})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	latencies := make([]float64, 0, n)
	var g errgroup.Group
	g.SetLimit(inflight)
	began := time.Now()
	for i := range n {
		g.Go(func() error {
			word := fmt.Sprint("w", i)
			sent := time.Now()
			reply, err := s.Run(ctx, &wire.RunRequest{
				TaskData: map[string]any{"prompt": "Say the word " + word + ".", "answer": word}, Model: "stand-in",
				Client: map[string]any{"type": "eval", "base_url": args[1]}, Sampling: map[string]any{},
			}, nil)
			if err != nil {
				return err
			}
			if !reply.Episode.OK {
				return errors.New("an episode is not ok")
			}
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, time.Since(sent).Seconds())
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	wall := time.Since(began).Seconds()
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"latencies": latencies, "wall": wall})
}
