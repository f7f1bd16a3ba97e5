package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape"
)

// interval is how often something is retried that does not work yet: a small part of the measured time.
const interval = 50 * time.Millisecond

// times are the times from the creation to events. Zero means never.
type times struct {
	scheduled, answer, node, healthy, gone time.Duration
}

// creation is one shoot of a round.
type creation struct {
	shoot *corev1beta1.Shoot
	begin time.Time
	times
	// failed are the errors that its status reported, by task.
	failed map[string]string
	// api is a client of the shoot itself.
	api client.WithWatch
	err error
}

func (c *creation) key() client.ObjectKey { return client.ObjectKeyFromObject(c.shoot) }

// round creates shoots at the same time, waits for them, and deletes them. The last one also measures their CPU time and memory.
func (b *bench) round(ctx context.Context, r *report, last bool) error {
	creations := make([]*creation, b.atOnce)
	for i := range creations {
		shoot, err := b.shoot(i)
		if err != nil {
			return err
		}
		creations[i] = &creation{shoot: shoot, failed: map[string]string{}}
	}
	begin := time.Now()
	each(creations, func(c *creation) { c.err = b.create(ctx, c) })
	r.allHealthy(creations, time.Since(begin))
	var errs []error
	if last && ctx.Err() == nil {
		errs = append(errs, b.measure(ctx, r, creations))
		if b.picture != "" {
			errs = append(errs, b.draw(ctx, creations[0]))
		}
	}
	// Also after an interruption, so that nothing is left behind.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.limit)
	defer cancel()
	each(creations, func(c *creation) { c.err = errors.Join(c.err, b.remove(ctx, c)) })
	for _, c := range creations {
		errs = append(errs, c.err)
	}
	r.add(creations)
	return errors.Join(errs...)
}

func each(creations []*creation, do func(*creation)) {
	var running sync.WaitGroup
	for _, c := range creations {
		running.Go(func() { do(c) })
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
	shoot.Name = fmt.Sprintf("%s%d", b.name, i)
	return shoot, nil
}

// create creates a shoot and measures the times of its events.
func (b *bench) create(ctx context.Context, c *creation) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	c.begin = time.Now()
	if err := b.garden.Create(ctx, c.shoot); err != nil {
		return fmt.Errorf("create shoot %q: %w", c.shoot.Name, err)
	}
	var running sync.WaitGroup
	var answerErr error
	running.Go(func() { answerErr = b.firsts(ctx, c) })
	err := kube.AwaitShoot(ctx, b.garden, c.key(), func(shoot *corev1beta1.Shoot) error {
		c.observe(shoot)
		return kube.ShootHealthy(shoot)
	}, nil)
	if err == nil {
		c.healthy = time.Since(c.begin)
	} else {
		err = fmt.Errorf("shoot %q: %w", c.shoot.Name, err)
		cancel() // do not wait for an API server that has not responded by now
	}
	running.Wait()
	return errors.Join(err, answerErr)
}

// observe records the status of a shoot.
func (c *creation) observe(shoot *corev1beta1.Shoot) {
	if shoot == nil {
		return
	}
	if shoot.Spec.SeedName != nil && c.scheduled == 0 {
		c.scheduled = time.Since(c.begin)
	}
	for _, failure := range shoot.Status.LastErrors {
		task := ""
		if failure.TaskID != nil {
			task = *failure.TaskID
		}
		c.failed[task] = failure.Description
	}
}

// firsts waits for the first response of the API server of a shoot, and for its first node.
func (b *bench) firsts(ctx context.Context, c *creation) (err error) {
	if c.api, err = b.connect(ctx, c.shoot); err != nil {
		return err
	}
	c.answer = time.Since(c.begin)
	if len(c.shoot.Spec.Provider.Workers) == 0 {
		return nil
	}
	return kube.Await(ctx, c.api, &corev1.NodeList{}, func(nodes []*corev1.Node) error {
		for _, node := range nodes {
			if kube.NodeReady(node) == nil {
				c.node = time.Since(c.begin)
				return nil
			}
		}
		return fmt.Errorf("shoot %q: no node is ready", c.shoot.Name)
	}, nil)
}

// connect requests a kubeconfig, and with it the namespaces of the shoot, until both succeed.
func (b *bench) connect(ctx context.Context, shoot *corev1beta1.Shoot) (c client.WithWatch, err error) {
	if err := persist(ctx, func() error { c, err = b.ask(ctx, shoot); return err }); err != nil {
		return nil, fmt.Errorf("the API server of shoot %q did not respond: %w", shoot.Name, err)
	}
	return c, nil
}

// persist retries until it succeeds. It returns the last error when ctx ends before.
func persist(ctx context.Context, do func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
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

// remove deletes a shoot and measures the time. A shoot whose creation was refused is not deleted, as it belongs to another run.
func (b *bench) remove(ctx context.Context, c *creation) error {
	if c.shoot.UID == "" {
		return nil
	}
	start := time.Now()
	if err := persist(ctx, func() error { return kube.DeleteShoot(ctx, b.garden, c.key()) }); err != nil {
		return err
	}
	if err := kube.AwaitShoot(ctx, b.garden, c.key(), kube.ShootGone, nil); err != nil {
		return fmt.Errorf("shoot %q: %w", c.shoot.Name, err)
	}
	c.gone = time.Since(start)
	return nil
}
