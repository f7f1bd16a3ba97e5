package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/landscape"
)

// intruder makes requests as the gardenlet of a seed without shoots, all of which have to be refused, also while gardener-admission-controller
// and its webhooks do not run.
type intruder struct {
	garden client.Client
	// refused, failed and admitted are numbers of requests. Those that failed had no answer, or one of a server that was not ready.
	refused, failed int
	admitted        []string
}

// newIntruder returns an intruder in the garden of a landscape.
func newIntruder(l *landscape.Landscape, garden client.Client) (*intruder, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigFile(landscape.VirtualGarden))
	if err != nil {
		return nil, err
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: constants.SeedUserNamePrefix + "without-shoots", Groups: []string{constants.SeedsGroup}}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: garden.Scheme(), Mapper: garden.RESTMapper()})
	return &intruder{garden: c}, err
}

// run makes requests until the context ends.
func (i *intruder) run(ctx context.Context) {
	const interval = 50 * time.Millisecond
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	attempts := []struct {
		name string
		do   func(context.Context) error
	}{
		{"list Shoots", func(ctx context.Context) error { return i.garden.List(ctx, &corev1beta1.ShootList{}) }},
		{"list Secrets", func(ctx context.Context) error { return i.garden.List(ctx, &corev1.SecretList{}) }},
		{"get a Secret", func(ctx context.Context) error {
			obj := secret(constants.GardenNamespace, "backup-local")
			return i.garden.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		}},
		{"create a Secret", func(ctx context.Context) error {
			return i.garden.Create(ctx, secret(constants.GardenNamespace, "intruder"), client.DryRunAll)
		}},
		{"create a Seed", func(ctx context.Context) error {
			return i.garden.Create(ctx, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "intruder"}}, client.DryRunAll)
		}},
		{"create a BackupBucket", func(ctx context.Context) error {
			bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "intruder"}, Spec: corev1beta1.BackupBucketSpec{SeedName: new("local")}}
			return i.garden.Create(ctx, bucket, client.DryRunAll)
		}},
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for next := 0; ; next++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		attempt := attempts[next%len(attempts)]
		switch err := attempt.do(ctx); {
		case err == nil:
			i.admitted = append(i.admitted, attempt.name)
		case apierrors.IsForbidden(err):
			i.refused++
		default:
			i.failed++
		}
	}
}

// report prints what became of the requests, and fails if one was admitted.
func (i *intruder) report() error {
	fmt.Printf("%-32s %d refused, %d not answered, %d admitted\n", "requests of another seed", i.refused, i.failed, len(i.admitted))
	if len(i.admitted) > 0 {
		return fmt.Errorf("requests of another seed were admitted: %v", i.admitted)
	}
	return nil
}
