// Package bootstrap makes what the garden needs in the kube-apiserver next to gardener-apiserver: namespaces, and the identity of the
// garden.
package bootstrap

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// attemptTimeout ends an attempt that the kube-apiserver does not answer.
const attemptTimeout = 10 * time.Second

// backoff is how soon the next attempt comes. The server is not ready before the last one, so it starts with a short time.
var backoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 10 * time.Second}

// origin is the key of the ConfigMap that names the process that wrote the identity.
const origin = "origin"

// namespaces are those that gardenlets write to. Source: controllers.yaml, "bootstrapNamespaces".
var namespaces = []string{constants.GardenerSeedLeaseNamespace, constants.GardenerShootIssuerNamespace}

// Until tries until it works. It returns when that is so, or when the context ends.
func Until(ctx context.Context, try func(context.Context) error) {
	_ = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		err := try(attempt)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Preparing the garden failed, trying again")
		}
		return err == nil, nil
	})
}

// Namespaces makes the namespaces exist.
func Namespaces(ctx context.Context, c client.Client) error {
	for _, name := range namespaces {
		err := c.Get(ctx, client.ObjectKey{Name: name}, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}})
		if apierrors.IsNotFound(err) {
			err = c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %q: %w", name, err)
		}
	}
	return nil
}

// Identity creates the ConfigMap with the identity of the garden. It never changes, as other components rely on it. An existing one
// without an origin is adopted if it has the same identity.
func Identity(ctx context.Context, c client.Client, identity string) error {
	found := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity}, found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the identity of the cluster: %w", err)
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity},
		Immutable:  new(true),
		Data:       map[string]string{constants.ClusterIdentity: identity, origin: constants.ClusterIdentityOriginGardenerAPIServer},
	}
	is := found.Data[constants.ClusterIdentity]
	switch {
	case err != nil:
		if err := c.Create(ctx, want); err != nil {
			return fmt.Errorf("write the identity of the cluster: %w", err) // also if another replica was faster: then it is read again
		}
	case is != identity:
		klog.FromContext(ctx).Info("Keeping the identity that the cluster has already", "identity", is, "wanted", identity)
	case found.Immutable == nil && found.Data[origin] == "":
		want.ResourceVersion = found.ResourceVersion
		if err := c.Update(ctx, want); err != nil {
			return fmt.Errorf("write the identity of the cluster: %w", err)
		}
	}
	return nil
}
