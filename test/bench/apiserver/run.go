package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape"
)

// run creates the shoot, unless it exists, measures, and deletes what it has created.
func (b *bench) run(ctx context.Context, r *report) (err error) {
	data, err := os.ReadFile(b.manifest)
	if err != nil {
		return err
	}
	shoot := &corev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(data, shoot); err != nil {
		return fmt.Errorf("read %s: %w", b.manifest, err)
	}
	shoot.Name = b.name
	key := client.ObjectKeyFromObject(shoot)
	if !b.existing {
		fmt.Fprintf(os.Stderr, "create shoot %s\n", key)
		if err := b.garden.Create(ctx, shoot); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.remove(context.WithoutCancel(ctx), key)) }()
	}
	if err := b.limited(ctx, func(ctx context.Context) error { return kube.AwaitShoot(ctx, b.garden, key, kube.ShootHealthy, nil) }); err != nil {
		return err
	}
	if err := b.garden.Get(ctx, key, shoot); err != nil {
		return err
	}
	file, err := b.l.ShootKubeconfig(ctx, landscape.Access{Shoot: key, Expiration: 2 * time.Hour})
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return err
	}
	return b.measure(ctx, r, config, shoot.Status.TechnicalID)
}

// replaceScaling gives the HorizontalPodAutoscaler other bounds. It is done again and again, as the next reconciliation of the shoot restores them.
func (b *bench) replaceScaling(ctx context.Context, namespace string) error {
	if b.scaleAt == nil && b.scaleDownAfter == 0 {
		return nil
	}
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := b.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kubeapiserver.Name}, hpa); client.IgnoreNotFound(err) == nil && err != nil {
		return errors.New("-scale-at and -scale-down-after need a HorizontalPodAutoscaler, which the seed has if its spec.settings.verticalPodAutoscaler is enabled")
	} else if err != nil {
		return err
	}
	before := hpa.DeepCopy()
	if b.scaleAt != nil {
		for i, metric := range hpa.Spec.Metrics {
			if metric.Resource != nil && metric.Resource.Name == corev1.ResourceCPU {
				hpa.Spec.Metrics[i].Resource.Target.AverageValue = b.scaleAt
			}
		}
	}
	if b.scaleDownAfter > 0 {
		if hpa.Spec.Behavior == nil {
			hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
		}
		hpa.Spec.Behavior.ScaleDown = &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: new(int32(b.scaleDownAfter.Seconds())),
			Policies:                   []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 30}},
		}
	}
	return b.seed.Patch(ctx, hpa, client.MergeFrom(before))
}

// measure sends requests, is silent then, and adds a row to the report for each interval.
func (b *bench) measure(ctx context.Context, r *report, config *rest.Config, namespace string) error {
	if err := b.replaceScaling(ctx, namespace); err != nil {
		return err
	}
	loading, stopLoad := context.WithTimeout(ctx, b.duration)
	defer stopLoad()
	l := &load{objects: b.objects, data: make([]byte, b.bytes)}
	var clients sync.WaitGroup
	for i := range b.clients {
		c, err := l.client(loading, config)
		if err != nil {
			return err
		}
		clients.Go(func() { l.run(loading, c, i) })
	}
	defer clients.Wait()
	defer stopLoad() // before the wait
	begin := time.Now()
	tick := time.NewTicker(b.interval)
	defer tick.Stop()
	last := begin
	for time.Since(begin) < b.duration+b.quiet {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		now := time.Now()
		s := sample{Seconds: now.Sub(begin).Seconds(), Load: last.Sub(begin) < b.duration}
		s.set(l.cut(), now.Sub(last))
		last = now
		if err := errors.Join(b.replaceScaling(ctx, namespace), b.observe(ctx, &s, namespace)); err != nil {
			fmt.Fprintf(os.Stderr, "at %.0f s: %v\n", s.Seconds, err)
		}
		r.Samples = append(r.Samples, s)
		fmt.Fprintln(os.Stderr, s)
	}
	return nil
}

func (b *bench) limited(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return do(ctx)
}

// remove deletes the shoot.
func (b *bench) remove(ctx context.Context, key client.ObjectKey) error {
	return b.limited(ctx, func(ctx context.Context) error {
		fmt.Fprintf(os.Stderr, "delete shoot %s\n", key)
		if err := kube.DeleteShoot(ctx, b.garden, key); err != nil {
			return err
		}
		return kube.AwaitShoot(ctx, b.garden, key, kube.ShootGone, nil)
	})
}
