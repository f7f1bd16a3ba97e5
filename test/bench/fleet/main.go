// Command fleet measures how the processes of a garden do with many seeds and shoots, and what of it grows faster than their number.
//
// etcd, kube-apiserver, gardener-apiserver, gardener-controller-manager, gardener-scheduler and gardener-admission-controller are the real
// processes, on the loopback interface. Gardenlets are simulated in this process: each has its own identity, watches what a gardenlet watches,
// renews its Lease, and reports its Seed and Shoots; there are no control planes. It runs a tenth of the size first, then the size, and compares.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

type options struct {
	binary, output, profiles string
	size                     size
	calm                     time.Duration
	tenth, verbose           bool
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/gardener", "the binary with the processes of the garden")
	flag.StringVar(&o.output, "o", "table", "table or json")
	flag.StringVar(&o.profiles, "profiles", "", "directory for CPU and heap profiles of the processes")
	flag.IntVar(&o.size.Seeds, "seeds", 50, "how many seeds there are")
	flag.IntVar(&o.size.Shoots, "shoots", 2000, "how many shoots are created")
	flag.DurationVar(&o.calm, "calm", time.Minute, "how long the garden is measured when nothing changes but Leases")
	flag.BoolVar(&o.tenth, "tenth", true, "measure a tenth of the size too, and compare")
	flag.BoolVar(&o.verbose, "v", false, "print the logs of the processes")
	flag.Parse()
	klog.SetLogger(logr.Discard()) // of simulated gardenlets
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("unknown output %q; use -o table or -o json", o.output)
	}
	if _, err := os.Stat(o.binary); err != nil {
		return fmt.Errorf("%w; build it with: make build", err)
	}
	sizes := []size{o.size}
	if o.tenth {
		if o.size.Seeds < 10 || o.size.Shoots < 10 {
			return errors.New("a tenth needs at least 10 seeds and 10 shoots; leave it out with -tenth=false")
		}
		sizes = []size{{Seeds: o.size.Seeds / 10, Shoots: o.size.Shoots / 10}, o.size}
	}
	r := report{Machine: thisMachine()}
	for _, s := range sizes {
		result, err := measure(ctx, o, s, progress)
		if err != nil {
			return fmt.Errorf("%d seeds, %d shoots: %w", s.Seeds, s.Shoots, err)
		}
		r.Runs = append(r.Runs, result)
	}
	if len(r.Runs) == 2 {
		r.Growth = growth(r.Runs[0], r.Runs[1])
	}
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	return r.print(out)
}
