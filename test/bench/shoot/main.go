// Command shoot measures, on a running landscape, how long shoots take from their creation to the first response of their kube-apiserver, to
// their first node and until they are healthy, and the CPU time and memory of their control planes and nodes. It can draw the tasks of the
// last creation.
//
//	go run ./test/bench/shoot -landscape local -rounds 5
//	go run ./test/bench/shoot -at-once 10 -rounds 1 -o markdown
//	go run ./test/bench/shoot -f example/shoot.yaml -picture docs/images/critical-path.svg
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/landscape"
)

type bench struct {
	manifest, name, picture string
	rounds, atOnce          int
	// limit is how long a shoot may take for its creation, and for its deletion.
	limit  time.Duration
	l      *landscape.Landscape
	garden client.WithWatch
	// seed is the cluster that the shoots are on: the runtime cluster.
	seed client.WithWatch
}

func main() {
	var b bench
	var root, name, format string
	flag.StringVar(&root, "dir", ".landscape", "directory of landscapes")
	flag.StringVar(&name, "landscape", "local", "name of the landscape")
	flag.StringVar(&b.manifest, "f", "example/shoot-workerless.yaml", "the shoot to create; it gets other names")
	flag.StringVar(&b.name, "name", "b", "prefix of the names of the shoots")
	flag.IntVar(&b.rounds, "rounds", 5, "number of rounds")
	flag.IntVar(&b.atOnce, "at-once", 1, "how many shoots to create at the same time")
	flag.DurationVar(&b.limit, "limit", 10*time.Minute, "how long a creation or a deletion may take")
	flag.StringVar(&b.picture, "picture", "", "file for an SVG picture of the last creation: its tasks and its critical path")
	flag.StringVar(&format, "o", "text", "text, markdown or json")
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // errors of an API server that does not respond yet are expected
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	if err := b.main(ctx, root, name, format); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (b *bench) main(ctx context.Context, root, name, format string) error {
	write, ok := formats[format]
	switch {
	case !ok:
		return fmt.Errorf("-o must be text, markdown or json, not %q", format)
	case b.rounds < 1 || b.atOnce < 1:
		return errors.New("-rounds and -at-once must be at least 1")
	}
	if err := landscape.BypassProxy(os.Getenv, os.Setenv); err != nil {
		return err
	}
	var err error
	if b.l, err = landscape.Open(root, name); err != nil {
		return err
	}
	if err := b.l.CheckKubeconfig(landscape.VirtualGarden); err != nil { // it has the command that brings it up
		return err
	}
	if b.garden, err = b.l.Client(landscape.VirtualGarden); err != nil {
		return err
	}
	if b.seed, err = b.l.Client(landscape.RuntimeCluster); err != nil {
		return err
	}
	r := &report{Manifest: b.manifest, AtOnce: b.atOnce, Rounds: b.rounds}
	if r.Computer, err = observeComputer(ctx); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, r.Computer)
	if r.Computer.busy() {
		fmt.Fprintln(os.Stderr, "warning: the computer is busy, so everything takes longer than usual")
	}
	err = b.run(ctx, r)
	return errors.Join(write(os.Stdout, r), err)
}

// run runs all rounds. A shoot that fails is counted, and ends the run after its round.
func (b *bench) run(ctx context.Context, r *report) error {
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, b.rounds)
		if err := b.round(ctx, r, round == b.rounds-1); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return nil
}
