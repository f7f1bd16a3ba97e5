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
	"k8s.io/apimachinery/pkg/watch"
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
	shoot, err := u.shoot(shootName)
	if err != nil {
		return err
	}
	b := boundaries{users: u, killer: &killer{landscape: *name, programs: []string{"gardenlet"}}}
	if err := b.interrupt(ctx, "creation", shoot, func() error { return client.IgnoreAlreadyExists(c.garden.Create(ctx, shoot)) }, func(s *corev1beta1.Shoot) bool {
		return kube.ShootHealthy(s) == nil
	}); err != nil {
		return err
	}
	if err := u.matchesSpec(ctx, shoot); err != nil {
		return err
	}
	deleteShoot := func() error { return kube.DeleteShoot(ctx, c.garden, client.ObjectKeyFromObject(shoot)) }
	if err := b.interrupt(ctx, "deletion", shoot, deleteShoot, func(s *corev1beta1.Shoot) bool { return s == nil }); err != nil {
		return err
	}
	return before.leaks(ctx)
}

type boundaries struct {
	*users
	*killer
}

// interrupt calls start, and kills the gardenlet at each new step until done. The shoot is nil when it is gone.
func (b boundaries) interrupt(ctx context.Context, what string, shoot *corev1beta1.Shoot, start func() error, done func(*corev1beta1.Shoot) bool) error {
	ctx, cancel := context.WithTimeout(ctx, boundaryTimeout)
	defer cancel()
	begin, kills, seen := time.Now(), 0, map[string]bool{}
	if err := start(); err != nil {
		return err
	}
	var last *corev1beta1.LastOperation
	for ctx.Err() == nil {
		err := b.follow(ctx, shoot, func(current *corev1beta1.Shoot) bool {
			if done(current) {
				return true
			}
			if current == nil || current.Status.LastOperation == nil {
				return false
			}
			last = current.Status.LastOperation
			if last.State != corev1beta1.LastOperationStateProcessing || !newSteps(seen, last) {
				return false
			}
			kills += b.crash(ctx)
			fmt.Fprintf(os.Stderr, "%7s %3d%% %s\n", time.Since(begin).Round(time.Millisecond), last.Progress, last.Description)
			return false
		})
		if err == nil {
			fmt.Printf("%s: done after %s, gardenlet killed %d times at %d steps\n", what, time.Since(begin).Round(time.Second), kills, len(seen))
			return nil
		}
	}
	return fmt.Errorf("%s: not done after %s and %d kills: %+v: %w", what, time.Since(begin).Round(time.Second), kills, last, ctx.Err())
}

// newSteps reports whether the status has a step that is not in seen, and adds it.
func newSteps(seen map[string]bool, last *corev1beta1.LastOperation) bool {
	before := len(seen)
	for step := range strings.SplitSeq(last.Description, ", ") {
		seen[string(last.Type)+step] = true
	}
	return len(seen) > before
}

// follow watches a shoot until stop returns true, which gets nil when the shoot is gone. It fails when the watch ends before.
func (b boundaries) follow(ctx context.Context, shoot *corev1beta1.Shoot, stop func(*corev1beta1.Shoot) bool) error {
	options := []client.ListOption{client.InNamespace(shoot.Namespace), client.MatchingFields{"metadata.name": shoot.Name}}
	list := &corev1beta1.ShootList{}
	if err := b.garden.List(ctx, list, options...); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		if stop(nil) {
			return nil
		}
	} else if stop(&list.Items[0]) {
		return nil
	}
	changes, err := b.garden.Watch(ctx, &corev1beta1.ShootList{}, append(options, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		current, ok := change.Object.(*corev1beta1.Shoot)
		if !ok {
			break
		}
		if change.Type == watch.Deleted {
			current = nil
		}
		if stop(current) {
			return nil
		}
	}
	return errors.New("the watch has ended")
}

// crash kills the gardenlet, and makes the next one start at once: otherwise the kubelet would restart the container with an increasing
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
	if err := b.seed.List(ctx, pods, client.InNamespace(constants.GardenNamespace)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; strings.HasPrefix(pod.Name, "gardenlet-") {
			if err := b.seed.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
			}
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "gardenlet-leader-election"}}
	if err := b.seed.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	return kills
}
