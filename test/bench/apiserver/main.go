// Command apiserver measures, on a running landscape, how the kube-apiserver of a shoot follows its load: clients change ConfigMaps and Secrets for a while
// and are silent then. It prints, for each interval, requests and their latency, the number of pods and what the HorizontalPodAutoscaler sees and wants, CPU
// and memory of the pods, and what they request. The seed has to have the Vertical Pod Autoscaler (docs/operating.md); without it, the number is fixed.
//
//	go run ./test/bench/apiserver -landscape local
//	go run ./test/bench/apiserver -clients 64 -duration 10m -o markdown
//	go run ./test/bench/apiserver -scale-at 500m -scale-down-after 1m      # on a computer on which no pod can use 6 CPUs
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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/landscape"
)

type bench struct {
	manifest, name string
	// existing says that the shoot is there, and stays.
	existing bool
	clients  int
	// objects is how many objects of each kind and client there are, and bytes the size of each.
	objects, bytes            int
	duration, quiet, interval time.Duration
	// scaleAt replaces the CPU usage per pod at which pods are added, if it is not nil, and scaleDownAfter how long before some are removed, if it is
	// not zero.
	scaleAt        *resource.Quantity
	scaleDownAfter time.Duration
	// limit is how long the creation, and the deletion of the shoot may take.
	limit  time.Duration
	l      *landscape.Landscape
	garden client.WithWatch
	// seed is the cluster that the shoot is on: the runtime cluster.
	seed client.WithWatch
}

func main() {
	var b bench
	var root, name, format, scaleAt string
	flag.StringVar(&root, "dir", ".landscape", "directory of landscapes")
	flag.StringVar(&name, "landscape", "local", "name of the landscape")
	flag.StringVar(&b.manifest, "f", "example/shoot-workerless.yaml", "the shoot to create; it gets another name")
	flag.StringVar(&b.name, "name", "loaded", "name of the shoot")
	flag.BoolVar(&b.existing, "existing", false, "the shoot is there already, in the namespace that the file has, and stays")
	flag.IntVar(&b.clients, "clients", 16, "how many clients, with a connection each")
	flag.IntVar(&b.objects, "objects", 20, "how many ConfigMaps, and how many Secrets, of each client there are; it deletes its oldest for each that it creates")
	flag.IntVar(&b.bytes, "bytes", 1024, "size of the data of an object")
	flag.DurationVar(&b.duration, "duration", 5*time.Minute, "how long there are requests")
	flag.DurationVar(&b.quiet, "quiet", 40*time.Minute, "how long to watch afterwards; pods are removed after half an hour, one every five minutes")
	flag.DurationVar(&b.interval, "interval", 15*time.Second, "time between two rows")
	flag.StringVar(&scaleAt, "scale-at", "", "CPUs per pod, such as 500m, at which the HorizontalPodAutoscaler adds pods in this run, instead of its own value")
	flag.DurationVar(&b.scaleDownAfter, "scale-down-after", 0, "in this run, remove pods after this time, and one every 30 seconds, instead of the HorizontalPodAutoscaler's own values")
	flag.DurationVar(&b.limit, "limit", 10*time.Minute, "how long the creation or the deletion of the shoot may take")
	flag.StringVar(&format, "o", "text", "text, markdown or json")
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // errors of an API server that does not respond yet are expected
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	if err := b.main(ctx, root, name, format, scaleAt); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (b *bench) main(ctx context.Context, root, name, format, scaleAt string) error {
	write, ok := formats[format]
	switch {
	case !ok:
		return fmt.Errorf("-o must be text, markdown or json, not %q", format)
	case b.clients < 1 || b.objects < 1 || b.bytes < 0:
		return errors.New("-clients and -objects must be at least 1, and -bytes not negative")
	case b.interval <= 0 || b.duration < b.interval || b.quiet < 0 || b.scaleDownAfter < 0:
		return errors.New("-interval must be positive, -duration at least as long, and -quiet and -scale-down-after not negative")
	}
	if scaleAt != "" {
		value, err := resource.ParseQuantity(scaleAt)
		if err != nil || value.Sign() <= 0 {
			return fmt.Errorf("-scale-at must be a number of CPUs such as 500m, not %q", scaleAt)
		}
		b.scaleAt = &value
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
	r := &report{Manifest: b.manifest, Clients: b.clients, Objects: b.objects, Bytes: b.bytes}
	err = b.run(ctx, r)
	return errors.Join(write(os.Stdout, r), err)
}
