// Command shoot measures, on a landscape that runs, how long shoots take from the order to the first answer of their API and to being
// healthy, and what their control planes take of the computer.
//
//	go run ./test/bench/shoot -landscape local -rounds 5
//	go run ./test/bench/shoot -at-once 10
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape"
)

const (
	// lookAgain is how often an API that does not answer yet is asked: a small part of what is measured.
	lookAgain = 50 * time.Millisecond
	// limit is how long one shoot may take, for each of the two ways.
	limit = 10 * time.Minute
)

type bench struct {
	manifest       string
	rounds, atOnce int
	l              *landscape.Landscape
	garden         client.WithWatch
}

// times are how long after the order something was so. Zero means never.
type times struct {
	scheduled, answer, node, healthy, gone time.Duration
}

func main() {
	var b bench
	var root, name string
	flag.StringVar(&root, "dir", ".landscape", "where the landscapes are")
	flag.StringVar(&name, "landscape", "local", "name of the landscape")
	flag.StringVar(&b.manifest, "f", "example/shoot-workerless.yaml", "the shoot to order; it gets other names")
	flag.IntVar(&b.rounds, "rounds", 5, "how many times to do it")
	flag.IntVar(&b.atOnce, "at-once", 1, "how many shoots to order at the same time")
	flag.Parse()
	log.SetLogger(logr.Discard())
	err := b.open(root, name)
	if err == nil {
		err = b.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (b *bench) open(root, name string) (err error) {
	if b.l, err = landscape.Open(root, name); err != nil {
		return err
	}
	b.garden, err = b.l.Client(landscape.RuntimeCluster)
	return err
}

func (b *bench) run(ctx context.Context) error {
	var all []times
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, b.rounds)
		results, use, err := b.round(ctx)
		if err != nil {
			return err
		}
		all = append(all, results...)
		if round == b.rounds-1 {
			use.print(os.Stdout, b.atOnce)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nafter the order\tmedian\tbest\tworst\t")
	for _, row := range []struct {
		title string
		of    func(times) time.Duration
	}{
		{"scheduled", func(t times) time.Duration { return t.scheduled }},
		{"first API answer", func(t times) time.Duration { return t.answer }},
		{"first node ready", func(t times) time.Duration { return t.node }},
		{"healthy", func(t times) time.Duration { return t.healthy }},
		{"deleted, after its order", func(t times) time.Duration { return t.gone }},
	} {
		var values []time.Duration
		for _, t := range all {
			values = append(values, row.of(t))
		}
		slices.Sort(values)
		if values[len(values)-1] == 0 {
			continue // a shoot without nodes
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", row.title, seconds(values[len(values)/2]), seconds(values[0]), seconds(values[len(values)-1]))
	}
	return w.Flush()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// round orders shoots at the same time, waits for them, and deletes them again.
func (b *bench) round(ctx context.Context) ([]times, usage, error) {
	shoots := make([]*corev1beta1.Shoot, b.atOnce)
	for i := range shoots {
		shoot, err := b.shoot(i)
		if err != nil {
			return nil, nil, err
		}
		shoots[i] = shoot
	}
	results, errs := make([]times, b.atOnce), make([]error, b.atOnce)
	each(shoots, func(i int, shoot *corev1beta1.Shoot) { results[i], errs[i] = b.create(ctx, shoot) })
	use, err := b.measure(ctx, shoots)
	errs = append(errs, err)
	each(shoots, func(i int, shoot *corev1beta1.Shoot) {
		gone, err := b.remove(ctx, shoot)
		results[i].gone, errs[i] = gone, errors.Join(errs[i], err)
	})
	return results, use, errors.Join(errs...)
}

func each(shoots []*corev1beta1.Shoot, do func(int, *corev1beta1.Shoot)) {
	var running sync.WaitGroup
	for i, shoot := range shoots {
		running.Go(func() { do(i, shoot) })
	}
	running.Wait()
}

func (b *bench) shoot(i int) (*corev1beta1.Shoot, error) {
	data, err := os.ReadFile(b.manifest)
	if err != nil {
		return nil, err
	}
	shoot := &corev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(data, shoot); err != nil {
		return nil, fmt.Errorf("read %s: %w", b.manifest, err)
	}
	shoot.Name = fmt.Sprintf("b%d", i)
	return shoot, nil
}

// create orders a shoot and takes the time of what happens to it.
func (b *bench) create(ctx context.Context, shoot *corev1beta1.Shoot) (t times, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	if err := b.garden.Create(ctx, shoot); err != nil {
		return t, fmt.Errorf("order shoot %q: %w", shoot.Name, err)
	}
	var running sync.WaitGroup
	var answerErr error
	running.Go(func() {
		var shootClient client.WithWatch
		if shootClient, answerErr = b.connect(ctx, shoot); answerErr != nil {
			return
		}
		t.answer = time.Since(start)
		if len(shoot.Spec.Provider.Workers) == 0 {
			return
		}
		answerErr = kube.Await(ctx, shootClient, &corev1.NodeList{}, func(nodes []*corev1.Node) error {
			for _, node := range nodes {
				if kube.NodeReady(node) == nil {
					t.node = time.Since(start)
					return nil
				}
			}
			return errors.New("no node is ready")
		}, nil)
	})
	err = kube.AwaitShoot(ctx, b.garden, client.ObjectKeyFromObject(shoot), func(s *corev1beta1.Shoot) error {
		if s.Spec.SeedName != nil && t.scheduled == 0 {
			t.scheduled = time.Since(start)
		}
		return kube.ShootHealthy(s)
	}, nil)
	t.healthy = time.Since(start)
	running.Wait()
	return t, errors.Join(err, answerErr)
}

// connect asks for a kubeconfig and with it for the namespaces of the shoot, until both are there.
func (b *bench) connect(ctx context.Context, shoot *corev1beta1.Shoot) (client.WithWatch, error) {
	var last error
	for tick := time.NewTicker(lookAgain); ; {
		c, err := b.ask(ctx, shoot)
		if err == nil {
			return c, nil
		}
		last = err
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the API of shoot %q never answered: %w", shoot.Name, last)
		}
	}
}

func (b *bench) ask(ctx context.Context, shoot *corev1beta1.Shoot) (client.WithWatch, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	file, err := b.l.ShootKubeconfig(ctx, landscape.Access{Shoot: client.ObjectKeyFromObject(shoot), Expiration: time.Hour})
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return nil, err
	}
	return c, c.List(ctx, &corev1.NamespaceList{})
}

// remove deletes a shoot and returns how long that took.
func (b *bench) remove(ctx context.Context, shoot *corev1beta1.Shoot) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start, key := time.Now(), client.ObjectKeyFromObject(shoot)
	if err := kube.DeleteShoot(ctx, b.garden, key); err != nil {
		return 0, err
	}
	err := kube.AwaitShoot(ctx, b.garden, key, kube.ShootGone, nil)
	return time.Since(start), err
}
