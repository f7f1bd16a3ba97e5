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

// What many shoots cost the controller that decides about installations, whether they are there at its start or come one by one.
// It reports passes and their time: the process also runs gardener-apiserver, so its CPU time would say little.
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
	g := &garden{Env: e, c: c, clock: testingclock.NewFakeClock(time.Now())}
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
		await(b, g, &corev1beta1.ControllerInstallationList{}, func(installations []*corev1beta1.ControllerInstallation) error {
			if len(installations) != seeds {
				return fmt.Errorf("there are %d installations", len(installations))
			}
			return nil
		})
	}
	settled()
	passes, seconds := reconciles(b)
	b.Logf("%d shoots in %s: %v passes, %.3f s", shoots, time.Since(begin).Round(time.Second), passes, seconds)
	b.ReportMetric(passes, "passes")
	b.ReportMetric(seconds, "s-in-passes")

	g.stop()
	g.start(b)
	extra := newSeed("extra")
	extra.Spec.Backup = nil
	g.create(b, newRegistration("extra", "ControlPlane", "infra-extra"), extra)
	await(b, g, &corev1beta1.ControllerInstallationList{}, func(installations []*corev1beta1.ControllerInstallation) error {
		if len(installations) != seeds+1 {
			return fmt.Errorf("there are %d installations", len(installations))
		}
		return nil
	})
	passesAfter, secondsAfter := reconciles(b)
	b.Logf("after a restart: %v passes, %.3f s", passesAfter-passes, secondsAfter-seconds)
}

// reconciles returns how often the controller looked at a seed, and how long that took altogether.
func reconciles(b *testing.B) (passes, seconds float64) {
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
					passes += float64(metric.GetHistogram().GetSampleCount())
					seconds += metric.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return passes, seconds
}
