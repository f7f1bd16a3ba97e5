package local

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
)

// kubeconfigKey is the key of the shoot's credentials with the kubeconfig of the cluster whose pods are its machines. Without it, that is the cluster of
// the seed. A control plane can only move to another seed with it.
const kubeconfigKey = "kubeconfig"

const (
	// userTimeout limits a request to a cluster of a user.
	userTimeout = 30 * time.Second
	// mostOfUser is how many bytes a response of it may have.
	mostOfUser = 8 << 20
)

// kubeconfigOf returns the kubeconfig in the credentials of a shoot, or nothing if there is none.
func kubeconfigOf(ctx context.Context, reader client.Reader, ref corev1.SecretReference) ([]byte, error) {
	credentials := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, credentials)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %q: %w", ref.Name, err)
	}
	return credentials.Data[kubeconfigKey], nil
}

// target returns a client of the cluster with the machines of a shoot, and whether it is another one than that of the seed.
func target(ctx context.Context, seed client.Client, reader client.Reader, ref corev1.SecretReference) (c client.Client, other bool, err error) {
	kubeconfig, err := kubeconfigOf(ctx, reader, ref)
	if err != nil || len(kubeconfig) == 0 {
		return seed, false, err
	}
	config, err := kube.ConfigOfUser(kubeconfig)
	if err == nil {
		// It is the user's: a server that answers late or much must not hold up other shoots.
		config.Timeout = userTimeout
		kube.LimitResponses(config, mostOfUser)
		c, err = client.New(config, client.Options{Scheme: seed.Scheme()})
	}
	if err != nil {
		return nil, true, errorcode.With(fmt.Errorf("Secret %q: %w", ref.Name, err), corev1beta1.ErrorConfigurationProblem)
	}
	return c, true, nil
}

// remove deletes objects that may exist.
func remove(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := c.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %T %q: %w", object, object.GetName(), err)
		}
	}
	return nil
}
