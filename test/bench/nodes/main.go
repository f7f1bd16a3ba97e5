// Command nodes measures, on a running landscape, how the nodes of an elastic worker pool follow their load: many pods at once, until all run;
// no pods, until the pool is at its minimum; and one pod in a pool without a node. It can draw pods and nodes over time.
//
//	go run ./test/bench/nodes -landscape local
//	go run ./test/bench/nodes -pods 60 -maximum 5 -picture docs/images/autoscaling.svg
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
	pods, maximum           int
	// unneeded is the time after which an idle node goes.
	unneeded time.Duration
	// limit is how long each step may take.
	limit  time.Duration
	l      *landscape.Landscape
	garden client.WithWatch
}

func main() {
	var b bench
	var root, name string
	flag.StringVar(&root, "dir", ".landscape", "directory of landscapes")
	flag.StringVar(&name, "landscape", "local", "name of the landscape")
	flag.StringVar(&b.manifest, "f", "example/shoot.yaml", "the shoot to create; it gets another name and other pools")
	flag.StringVar(&b.name, "name", "elastic", "name of the shoot")
	flag.IntVar(&b.pods, "pods", 60, "number of pods that come at once")
	flag.IntVar(&b.maximum, "maximum", 5, "most nodes of the pool; it begins with one")
	flag.DurationVar(&b.unneeded, "unneeded", 30*time.Second, "how long a node is idle before it goes; 30m without settings of the shoot")
	flag.DurationVar(&b.limit, "limit", 15*time.Minute, "how long each step may take")
	flag.StringVar(&b.picture, "picture", "", "file for an SVG picture of pods and nodes over time")
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // errors of an API server that does not respond yet are expected
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	if err := b.main(ctx, root, name); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (b *bench) main(ctx context.Context, root, name string) error {
	if b.pods < 1 || b.maximum < 2 {
		return errors.New("-pods must be at least 1, and -maximum at least 2")
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
	return b.run(ctx)
}
