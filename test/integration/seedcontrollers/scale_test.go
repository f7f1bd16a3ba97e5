package seedcontrollers

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/env"
)

// What many shoots cost the controller for installations, at its start and when they are created one by one. It reports the number of
// reconciliations and their time: the process also runs gardener-apiserver, so its CPU time would not be comparable.
func BenchmarkShoots(b *testing.B) {
	const seeds, shoots, writers = 10, 5000, 20
	e, err := env.New(b.Context(), io.Discard, env.Lenient())
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { _ = e.Stop() })
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		b.Fatal(err)
	}
	g := &garden{Env: e, client: c, clock: testingclock.NewFakeClock(time.Now())}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev"}}, newRegistration("os", "OperatingSystemConfig", "local")}
	for i := range seeds {
		objects = append(objects, newSeed(fmt.Sprintf("s%d", i)))
	}
	g.create(b, objects...)
	g.start(b)
	defer func() { g.stop() }()

	begin := time.Now()
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := w; i < shoots; i += writers {
				shoot := newShoot(fmt.Sprintf("c%d", i), fmt.Sprintf("s%d", i%seeds))
				shoot.Spec.Provider.Type = "local"
				shoot.Spec.Networking.Type = new("flat")
				if err := c.Create(b.Context(), shoot); err != nil {
					b.Errorf("create shoot: %v", err)
					return
				}
			}
		})
	}
	writing.Wait()
	settled := func() {
		env.AwaitList(b, g.client, func(installations []*corev1beta1.ControllerInstallation) error {
			if len(installations) != seeds {
				return fmt.Errorf("%d installations exist", len(installations))
			}
			return nil
		})
	}
	settled()
	count, seconds := reconciles(b)
	b.Logf("%d shoots in %s: %v reconciliations, %.3f s", shoots, time.Since(begin).Round(time.Second), count, seconds)
	b.ReportMetric(count, "reconciliations")
	b.ReportMetric(seconds, "s-in-reconciliations")

	g.stop()
	g.start(b)
	extra := newSeed("extra")
	extra.Spec.Backup = nil
	g.create(b, newRegistration("extra", "ControlPlane", "infra-extra"), extra)
	env.AwaitList(b, g.client, func(installations []*corev1beta1.ControllerInstallation) error {
		if len(installations) != seeds+1 {
			return fmt.Errorf("%d installations exist", len(installations))
		}
		return nil
	})
	countAfter, secondsAfter := reconciles(b)
	b.Logf("after a restart: %v reconciliations, %.3f s", countAfter-count, secondsAfter-seconds)
}

// reconciles returns the number of reconciliations of seeds, and how long they took altogether.
func reconciles(b *testing.B) (count, seconds float64) {
	b.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() != "controller" || label.GetValue() != "controllerinstallation-seed" {
					continue
				}
				if family.GetName() == "controller_runtime_reconcile_time_seconds" {
					count += float64(metric.GetHistogram().GetSampleCount())
					seconds += metric.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return count, seconds
}
