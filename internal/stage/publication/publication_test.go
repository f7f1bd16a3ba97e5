package publication

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// inputs returns the inputs for a shoot whose credentials are not generated yet.
func inputs(clusters *stagetest.Clusters, workers bool) Inputs {
	return Inputs{
		Run: clusters.Run(), Project: "dev",
		Shoot: &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: stagetest.Name, UID: "1"}},
		Credentials: credentials.New(credentials.Values{
			SeedAPI: clusters.Seed, Namespace: stagetest.Namespace, Workers: workers, Clock: clock.RealClock{},
		}),
	}
}

// published returns the keys in the data of what exists in the garden, by kind and name.
func published(t *testing.T, garden client.Client) map[string][]string {
	t.Helper()
	secrets, configMaps, internal := &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1beta1.InternalSecretList{}
	if err := errors.Join(garden.List(t.Context(), secrets), garden.List(t.Context(), configMaps), garden.List(t.Context(), internal)); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, o := range secrets.Items {
		all["Secret "+client.ObjectKeyFromObject(&o).String()] = slices.Sorted(maps.Keys(o.Data))
	}
	for _, o := range configMaps.Items {
		all["ConfigMap "+client.ObjectKeyFromObject(&o).String()] = slices.Sorted(maps.Keys(o.Data))
	}
	for _, o := range internal.Items {
		all["InternalSecret "+client.ObjectKeyFromObject(&o).String()] = slices.Sorted(maps.Keys(o.Data))
	}
	return all
}

func TestPublishCredentials(t *testing.T) {
	workerless := map[string][]string{
		"ConfigMap garden-dev/crazy-botany.ca-cluster":     {"ca.crt"},
		"Secret garden-dev/crazy-botany.ca-cluster":        {"ca.crt"},
		"InternalSecret garden-dev/crazy-botany.ca-client": {"ca.crt", "ca.key"},
	}
	workers := maps.Clone(workerless)
	workers["ConfigMap garden-dev/crazy-botany.ca-kubelet"] = []string{"ca.crt"}
	for name, tc := range map[string]struct {
		workers bool
		want    map[string][]string
	}{
		"workerless": {want: workerless},
		"with nodes": {workers: true, want: workers},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in := inputs(clusters, tc.workers)
			if err := stagetest.RunTask(t.Context(), t, Tasks(in), "publish-credentials"); err == nil || len(published(t, clusters.Garden)) > 0 {
				t.Errorf("credentials are published that do not exist: %v", err)
			}
			all := stagetest.Generate(t, in.Credentials)
			// Users have no SSH key any more if it is disabled.
			former := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "crazy-botany.ssh-keypair"}}
			if err := clusters.Garden.Create(t.Context(), former); err != nil {
				t.Fatal(err)
			}
			version := ""
			for range 2 {
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), "publish-credentials"); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, published(t, clusters.Garden)); diff != "" {
					t.Errorf("published (-want +got):\n%s", diff)
				}
				bundle := &corev1.ConfigMap{}
				if err := clusters.Garden.Get(t.Context(), client.ObjectKey{Namespace: "garden-dev", Name: "crazy-botany.ca-cluster"}, bundle); err != nil {
					t.Fatal(err)
				}
				if bundle.Data["ca.crt"] != string(all.Bundle("ca")) || bundle.OwnerReferences[0].Name != stagetest.Name {
					t.Errorf("the CA bundle has another content or owner: %v", bundle)
				}
				labels := map[string]string{
					"gardener.cloud/role": "ca-cluster", "shoot.gardener.cloud/name": "crazy-botany", "shoot.gardener.cloud/uid": "1",
					"gardener.cloud/update-restriction": "true", "discovery.gardener.cloud/public": "shoot-ca",
				}
				if diff := cmp.Diff(labels, bundle.Labels); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				if version != "" && bundle.ResourceVersion != version {
					t.Error("it is written although nothing has changed")
				}
				version = bundle.ResourceVersion
			}
			clean := func() error { return Deletion(in).Run(t.Context()) }
			for range 2 {
				if err := clean(); err != nil {
					t.Fatal(err)
				}
				if left := published(t, clusters.Garden); len(left) > 0 {
					t.Errorf("left after the deletion: %v", left)
				}
			}
		})
	}
}

func TestPublishIssuer(t *testing.T) {
	clusters := stagetest.New(t)
	in := inputs(clusters, false)
	if tasks := Tasks(in); len(tasks) != 1 {
		t.Errorf("%d tasks without a managed issuer", len(tasks))
	}
	in.Issuer, in.HadIssuer = "https://issuer.example.com/projects/dev/shoots/1/issuer", true
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "publish-issuer"); err == nil {
		t.Error("keys are published that do not exist")
	}
	stagetest.Generate(t, in.Credentials)
	secret := &corev1.Secret{}
	for range 2 {
		if err := stagetest.RunTask(t.Context(), t, Tasks(in), "publish-issuer"); err != nil {
			t.Fatal(err)
		}
		if err := clusters.Garden.Get(t.Context(), client.ObjectKey{Namespace: "gardener-system-shoot-issuer", Name: "dev--1"}, secret); err != nil {
			t.Fatal(err)
		}
		config, keys := struct{ Issuer string }{}, struct{ Keys []any }{}
		if err := errors.Join(json.Unmarshal(secret.Data["openid-config"], &config), json.Unmarshal(secret.Data["jwks"], &keys)); err != nil {
			t.Fatal(err)
		}
		if config.Issuer != in.Issuer || len(keys.Keys) != 1 {
			t.Errorf("issuer %q has %d keys", config.Issuer, len(keys.Keys))
		}
	}
	labels := map[string]string{
		"discovery.gardener.cloud/public": "serviceaccount", "authentication.gardener.cloud/public-keys": "serviceaccount", "project.gardener.cloud/name": "dev",
		"shoot.gardener.cloud/name": "crazy-botany", "shoot.gardener.cloud/namespace": "garden-dev",
	}
	if diff := cmp.Diff(labels, secret.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if err := Deletion(in).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := published(t, clusters.Garden); len(left) > 0 {
		t.Errorf("left after the deletion: %v", left)
	}
}

// One object that cannot be written or deleted does not keep others from being.
func TestPublicationFails(t *testing.T) {
	fails := errors.New("no answer")
	clusters := stagetest.New(t)
	in := inputs(clusters, false)
	stagetest.Generate(t, in.Credentials)
	in.Run.GardenCache = interceptor.NewClient(clusters.Garden, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return fails
			}
			return c.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return fails
			}
			return c.Delete(ctx, obj, opts...)
		},
	})
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "publish-credentials"); !errors.Is(err, fails) {
		t.Errorf("publish: %v", err)
	}
	want := map[string][]string{
		"Secret garden-dev/crazy-botany.ca-cluster": {"ca.crt"}, "InternalSecret garden-dev/crazy-botany.ca-client": {"ca.crt", "ca.key"},
	}
	if diff := cmp.Diff(want, published(t, clusters.Garden)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if err := Deletion(in).Run(t.Context()); !errors.Is(err, fails) {
		t.Errorf("delete: %v", err)
	}
	if left := published(t, clusters.Garden); len(left) > 0 {
		t.Errorf("left after the deletion: %v", left)
	}
}
