package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// deletionLimit is how long a seed without shoots may take to be deleted.
const deletionLimit = 10 * time.Minute

// operationDone returns why an operation of a Garden is not done. The Garden is nil when there is none.
type operationDone func(*operatorv1alpha1.Garden) error

// runGarden rotates the credentials of a garden, deletes it, and creates it anew, while gardener-operator is killed whenever the status
// reports a step for the first time.
func runGarden(ctx context.Context, flags *flag.FlagSet, args []string) error {
	name := flags.String("landscape", "local", "name of the landscape, which must be up; for a deletion, without shoots")
	binary := flags.String("binary", "bin/landscape", "the command that brings it up again")
	steps := flags.String("steps", "rotate,recreate", "what is done: rotate the credentials; recreate the garden, which deletes its seeds first; "+
		"restore, which deletes the volumes of its etcds after -writes and measures what is lost")
	writes := flags.Duration("writes", 6*time.Minute, "how long objects are written before volumes are deleted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	_, c, err := open(*name)
	if err != nil {
		return err
	}
	restoration := restoration{clients: c, writes: *writes}
	g := gardens{
		boundaries: boundaries{c: c.seed, killer: &killer{landscape: *name, programs: []string{"gardener-operator"}}},
		up: func(ctx context.Context) ([]byte, error) {
			return exec.CommandContext(ctx, *binary, "up", "--name", *name, "--without-shoot").CombinedOutput() //nolint:gosec // the user's command
		},
	}
	known := map[string]func(context.Context) error{
		"rotate": g.rotate, "recreate": func(ctx context.Context) error { return g.recreate(ctx, *name) }, "restore": restoration.run,
	}
	for step := range strings.SplitSeq(*steps, ",") {
		if known[step] == nil {
			return fmt.Errorf("-steps: unknown step %q", step)
		}
		if err := known[step](ctx); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

// gardens are operations of the Garden.
type gardens struct {
	boundaries
	up func(context.Context) ([]byte, error)
}

// rotate rotates all credentials of the garden.
func (g gardens) rotate(ctx context.Context) error {
	for _, step := range []struct {
		operation string
		phase     corev1beta1.CredentialsRotationPhase
	}{
		{constants.OperationRotateCredentialsStart, corev1beta1.RotationPrepared},
		{constants.OperationRotateCredentialsComplete, corev1beta1.RotationCompleted},
	} {
		begin := metav1.Now()
		if err := g.follow(ctx, step.operation, func() error { return g.request(ctx, step.operation) }, func(garden *operatorv1alpha1.Garden) error {
			return rotated(garden, step.phase, begin)
		}); err != nil {
			return err
		}
	}
	// Administrators need new credentials, as the CA is another one.
	if out, err := g.up(ctx); err != nil {
		return fmt.Errorf("up after the rotation: %w\n%s", err, out)
	}
	return nil
}

// follow starts an operation, and kills gardener-operator at each step until it is done.
func (g gardens) follow(ctx context.Context, what string, start func() error, done operationDone) error {
	return g.interrupt(ctx, what, start, func(ctx context.Context, check func(*corev1beta1.LastOperation) error) error {
		return kube.Await(ctx, g.c, &operatorv1alpha1.GardenList{}, func(found []*operatorv1alpha1.Garden) error {
			var garden *operatorv1alpha1.Garden
			if len(found) > 0 {
				garden = found[0]
			}
			err := done(garden)
			switch {
			case err == nil:
				return nil
			case garden == nil:
				return err
			}
			return fmt.Errorf("%w: %w", err, check(garden.Status.LastOperation))
		}, nil)
	})
}

// request requests an operation.
func (g gardens) request(ctx context.Context, operation string) error {
	garden := &operatorv1alpha1.GardenList{}
	if err := g.c.List(ctx, garden); err != nil {
		return err
	}
	if len(garden.Items) != 1 {
		return fmt.Errorf("there are %d Gardens", len(garden.Items))
	}
	return kube.PatchMetadata(ctx, g.c, &garden.Items[0], func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, operation)
	})
}

// rotated returns why the rotation of CAs and keys has not come to a phase since a time.
func rotated(garden *operatorv1alpha1.Garden, phase corev1beta1.CredentialsRotationPhase, since metav1.Time) error {
	if err := reconciled(garden); err != nil {
		return err
	}
	c := garden.Status.Credentials
	switch {
	case c == nil || c.Rotation == nil || c.Rotation.CertificateAuthorities == nil || c.Rotation.ServiceAccountKey == nil || c.Rotation.ETCDEncryptionKey == nil:
		return errors.New("the rotation has not begun")
	case c.Rotation.CertificateAuthorities.Phase != phase:
		return fmt.Errorf("CAs are %s", c.Rotation.CertificateAuthorities.Phase)
	case c.Rotation.ServiceAccountKey.Phase != phase:
		return fmt.Errorf("the key of ServiceAccounts is %s", c.Rotation.ServiceAccountKey.Phase)
	case garden.Status.LastOperation.LastUpdateTime.Before(&since):
		return errors.New("the last operation is from before")
	}
	return nil
}

// reconciled returns why the last operation of a Garden has not succeeded.
func reconciled(garden *operatorv1alpha1.Garden) error {
	switch {
	case garden == nil:
		return errors.New("there is no Garden")
	case garden.Status.LastOperation == nil || garden.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded:
		return errors.New("the operation has not succeeded")
	case garden.Status.ObservedGeneration != garden.Generation:
		return errors.New("the generation is not observed")
	}
	return nil
}

// recreate deletes the seeds and the garden, and brings both up again.
func (g gardens) recreate(ctx context.Context, landscapeName string) error {
	_, c, err := open(landscapeName)
	if err != nil {
		return err
	}
	if err := deleteSeeds(ctx, c); err != nil {
		return err
	}
	garden := &operatorv1alpha1.GardenList{}
	if err := g.c.List(ctx, garden); err != nil {
		return err
	}
	for i := range garden.Items {
		if err := g.follow(ctx, "deletion", func() error { return confirmAndDelete(ctx, g.c, &garden.Items[i]) }, func(left *operatorv1alpha1.Garden) error {
			if left != nil {
				return errors.New("the Garden exists")
			}
			return nil
		}); err != nil {
			return err
		}
	}
	// They stay when a Garden is deleted, and need its credentials.
	if err := g.c.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(constants.GardenNamespace)); err != nil {
		return err
	}
	var out []byte
	ended := make(chan error, 1)
	if err := g.follow(ctx, "creation", func() error {
		go func() {
			var err error
			out, err = g.up(ctx)
			ended <- err
		}()
		return nil
	}, reconciled); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("up: %w\n%s", err, out)
	}
	return nil
}

// deleteSeeds deletes all seeds and their gardenlets.
func deleteSeeds(ctx context.Context, c clients) error {
	ctx, cancel := context.WithTimeout(ctx, deletionLimit)
	defer cancel()
	// Without them, gardener-operator installs no gardenlet anew.
	if err := c.garden.DeleteAllOf(ctx, &seedmanagementv1alpha1.Gardenlet{}, client.InNamespace(constants.GardenNamespace)); err != nil {
		return err
	}
	seeds := &corev1beta1.SeedList{}
	if err := c.garden.List(ctx, seeds); err != nil {
		return err
	}
	for i := range seeds.Items {
		if err := confirmAndDelete(ctx, c.garden, &seeds.Items[i]); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "deleting %d seeds\n", len(seeds.Items))
	if err := kube.Await(ctx, c.garden, &corev1beta1.SeedList{}, func(left []*corev1beta1.Seed) error {
		if len(left) > 0 {
			return fmt.Errorf("seed %s is still there: %+v", left[0].Name, left[0].Status.LastOperation)
		}
		return nil
	}, nil); err != nil {
		return err
	}
	return client.IgnoreNotFound(c.seed.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "gardenlet"}}))
}

// confirmAndDelete confirms the deletion of an object, and deletes it.
func confirmAndDelete(ctx context.Context, c client.Client, object client.Object) error {
	if err := kube.PatchMetadata(ctx, c, object, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
	}); err != nil {
		return err
	}
	if err := c.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
