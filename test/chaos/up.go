package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/landscape"
)

// upLimit is how long a landscape may take to come up while its processes are killed.
const upLimit = 15 * time.Minute

// runUp brings up a landscape again and again while processes of the seed are killed. The landscape must come up each time by itself.
func runUp(ctx context.Context, flags *flag.FlagSet, args []string) error {
	rounds := flags.Int("rounds", 20, "how many times")
	name := flags.String("landscape", "chaos", "name of the landscape; it is removed after each round")
	binary := flags.String("binary", "bin/landscape", "the command that brings it up")
	programs := flags.String("programs", "gardenlet,gardener-resource-manager,etcd-druid", "what is killed")
	seed := flags.Uint64("seed", 0, "of the random numbers, to repeat a run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	k := &killer{
		landscape: *name, programs: strings.Split(*programs, ","), random: newRandom(*seed),
		shortest: 500 * time.Millisecond, longest: 10 * time.Second,
	}
	all := map[string]int{}
	for round := range *rounds {
		start := time.Now()
		err := upOnce(ctx, *binary, *name, k)
		for program, n := range k.kills {
			all[program] += n
		}
		down := exec.Command(*binary, "down", "--name", *name, "--yes") //nolint:noctx // also after the end
		if out, downErr := down.CombinedOutput(); downErr != nil {
			err = errors.Join(err, fmt.Errorf("down: %w\n%s", downErr, out))
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: up after %s, killed %v\n", round+1, *rounds, time.Since(start).Round(time.Second), k.kills)
	}
	printKills(all)
	return nil
}

// upOnce brings up a landscape while processes are killed, and checks its seed.
func upOnce(ctx context.Context, binary, name string, k *killer) error {
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	var running sync.WaitGroup
	killing, stop := context.WithCancel(ctx)
	running.Go(func() { k.run(killing) })
	out, err := exec.CommandContext(ctx, binary, "up", "--name", name).CombinedOutput()
	stop()
	running.Wait()
	if err != nil {
		return fmt.Errorf("up: %w\n%s", err, out)
	}
	l, err := landscape.Open(".landscape", name)
	if err != nil {
		return err
	}
	c, err := l.Client(landscape.RuntimeCluster)
	if err != nil {
		return err
	}
	seeds := &corev1beta1.SeedList{}
	if err := c.List(ctx, seeds); err != nil {
		return err
	}
	if len(seeds.Items) != 1 {
		return fmt.Errorf("there are %d seeds", len(seeds.Items))
	}
	return nil
}
