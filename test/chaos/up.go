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
	"gardener.cloud/gardener/internal/kube"
)

// upLimit is how long a landscape may take to come up while its processes are killed.
const upLimit = 15 * time.Minute

// seedLimit is how long the seed may take to become healthy when nothing is killed any more.
const seedLimit = 5 * time.Minute

// runUp brings up a landscape again and again while processes of the seed are killed. The landscape must come up each time by itself.
func runUp(ctx context.Context, flags *flag.FlagSet, args []string) error {
	rounds := flags.Int("rounds", 20, "how many times")
	name := flags.String("landscape", "chaos", "name of the landscape; it is removed after each round")
	binary := flags.String("binary", "bin/landscape", "the command that brings it up")
	programs := flags.String("programs", "gardenlet,gardener-resource-manager,etcd-druid", "what is killed")
	upFlags := flags.String("up-flags", "", "further flags of the command, such as --without-shoot")
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
		took, err := upOnce(ctx, *binary, *name, strings.Fields(*upFlags), k)
		for program, n := range k.kills {
			all[program] += n
		}
		down := exec.Command(*binary, "down", "--name", *name, "--yes") //nolint:noctx // also after an interruption
		if out, downErr := down.CombinedOutput(); downErr != nil {
			err = errors.Join(err, fmt.Errorf("down: %w\n%s", downErr, out))
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: up after %s, killed %v\n", round+1, *rounds, took.Round(time.Second), k.kills)
	}
	printKills(all)
	return nil
}

// upOnce brings up a landscape while processes are killed, and checks its seed. It returns how long the landscape took to come up.
func upOnce(ctx context.Context, binary, name string, upFlags []string, k *killer) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	var running sync.WaitGroup
	killing, stop := context.WithCancel(ctx)
	running.Go(func() { k.run(killing) })
	start := time.Now()
	out, err := exec.CommandContext(ctx, binary, append([]string{"up", "--name", name}, upFlags...)...).CombinedOutput()
	took := time.Since(start)
	stop()
	running.Wait()
	if err != nil {
		return took, fmt.Errorf("up: %w\n%s", err, out)
	}
	_, c, err := open(name)
	if err != nil {
		return took, err
	}
	// The last kill may have been a moment ago.
	ctx, cancel = context.WithTimeout(ctx, seedLimit)
	defer cancel()
	return took, kube.Await(ctx, c.garden, &corev1beta1.SeedList{}, oneHealthySeed, nil)
}

// oneHealthySeed returns why there is not exactly one seed, with conditions that are all True.
func oneHealthySeed(seeds []*corev1beta1.Seed) error {
	if len(seeds) != 1 {
		return fmt.Errorf("there are %d seeds", len(seeds))
	}
	if len(seeds[0].Status.Conditions) == 0 {
		return fmt.Errorf("seed %q: its health has not been checked yet", seeds[0].Name)
	}
	if err := kube.ConditionsTrue(seeds[0].Status.Conditions); err != nil {
		return fmt.Errorf("seed %q: %w", seeds[0].Name, err)
	}
	return nil
}
