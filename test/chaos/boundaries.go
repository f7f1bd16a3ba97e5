package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// boundaryTimeout is how long a creation or a deletion may take during which the gardenlet is killed at each step.
const boundaryTimeout = 20 * time.Minute

// runBoundaries creates and deletes one shoot, and kills the gardenlet whenever the status reports a step for the first time.
func runBoundaries(ctx context.Context, flags *flag.FlagSet, args []string) error {
	name := flags.String("landscape", "local", "name of the landscape, which must be up")
	manifest := flags.String("f", "example/shoot-workerless.yaml", "the shoot to create, with another name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, c, err := open(*name)
	if err != nil {
		return err
	}
	const shootName = "boundaries"
	before, err := observe(ctx, l, c.garden, shootName)
	if err != nil {
		return err
	}
	u := &users{l: l, clients: c, before: before, manifest: *manifest}
	shoot, err := shootFrom(u.manifest, shootName)
	if err != nil {
		return err
	}
	b := boundaries{c: c.seed, killer: &killer{landscape: *name, programs: []string{"gardenlet"}}}
	key := client.ObjectKeyFromObject(shoot)
	follow := func(ctx context.Context, check func(*corev1beta1.LastOperation) error, done func(*corev1beta1.Shoot) bool) error {
		return kube.AwaitShoot(ctx, c.garden, key, func(shoot *corev1beta1.Shoot) error {
			switch {
			case done(shoot):
				return nil
			case shoot == nil:
				return check(nil)
			}
			return check(shoot.Status.LastOperation)
		}, nil)
	}
	if err := b.interrupt(ctx, "creation", func() error { return client.IgnoreAlreadyExists(c.garden.Create(ctx, shoot)) }, func(ctx context.Context, check func(*corev1beta1.LastOperation) error) error {
		return follow(ctx, check, func(s *corev1beta1.Shoot) bool { return s != nil && kube.ShootHealthy(s) == nil })
	}); err != nil {
		return err
	}
	if err := u.matchesSpec(ctx, shoot); err != nil {
		return err
	}
	if err := b.interrupt(ctx, "deletion", func() error { return kube.DeleteShoot(ctx, c.garden, key) }, func(ctx context.Context, check func(*corev1beta1.LastOperation) error) error {
		return follow(ctx, check, func(s *corev1beta1.Shoot) bool { return s == nil })
	}); err != nil {
		return err
	}
	return before.leaks(ctx)
}

// boundaries kills a program with replicas in a cluster at each step of operations.
type boundaries struct {
	*killer
	// c is for the cluster in which the program runs, in the namespace garden.
	c client.WithWatch
}

// interrupt calls start, and kills the program at each new step. await returns when the operation is done; before, it calls check with each
// change of the operation, which is nil when none has begun.
func (b boundaries) interrupt(ctx context.Context, what string, start func() error, await func(ctx context.Context, check func(*corev1beta1.LastOperation) error) error) error {
	ctx, cancel := context.WithTimeout(ctx, boundaryTimeout)
	defer cancel()
	begin, kills, seen := time.Now(), 0, map[string]bool{}
	if err := start(); err != nil {
		return err
	}
	if err := await(ctx, func(last *corev1beta1.LastOperation) error {
		if last == nil {
			return errors.New("no operation has begun")
		}
		if last.State == corev1beta1.LastOperationStateProcessing && newSteps(seen, last) {
			kills += b.crash(ctx)
			fmt.Fprintf(os.Stderr, "%7s %3d%% %s\n", time.Since(begin).Round(time.Millisecond), last.Progress, last.Description)
		}
		return fmt.Errorf("%s %s (%d%%): %s", last.Type, last.State, last.Progress, last.Description)
	}); err != nil {
		return fmt.Errorf("%s: not done after %s and %d kills: %w", what, time.Since(begin).Round(time.Second), kills, err)
	}
	fmt.Printf("%s: done after %s, %s killed %d times at %d steps\n", what, time.Since(begin).Round(time.Second), b.programs[0], kills, len(seen))
	return nil
}

// newSteps reports whether the status has a step that is not in seen, and adds it.
func newSteps(seen map[string]bool, last *corev1beta1.LastOperation) bool {
	before := len(seen)
	for step := range strings.SplitSeq(last.Description, ", ") {
		seen[string(last.Type)+step] = true
	}
	return len(seen) > before
}

// crash kills the program, and makes the next one start at once: otherwise the kubelet would restart the container with an increasing
// back-off, and a new process would wait until the lease of the last one has expired.
func (b boundaries) crash(ctx context.Context) (kills int) {
	for _, pids := range b.victims() {
		for _, pid := range pids {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				kills++
			}
		}
	}
	pods := &corev1.PodList{}
	if err := b.c.List(ctx, pods, client.InNamespace(constants.GardenNamespace)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; strings.HasPrefix(pod.Name, b.programs[0]+"-") {
			if err := b.c.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
			}
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: b.programs[0] + "-leader-election"}}
	if err := b.c.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	return kills
}
