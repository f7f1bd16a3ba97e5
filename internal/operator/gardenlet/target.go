package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// kubeconfigKey is the key of Secrets with a kubeconfig.
	kubeconfigKey = "kubeconfig"
	// requestTimeout is the end of a request to a cluster that a kubeconfig is for.
	requestTimeout = 30 * time.Second
)

// errKubeconfigGone is for a Gardenlet that refers to a Secret that does not exist.
var errKubeconfigGone = errors.New("no kubeconfig")

// target is the cluster that becomes the seed.
type target struct {
	// api reads from the API server.
	api client.Reader
	// client writes.
	client client.Client
	// version reads the version of Kubernetes.
	version discovery.ServerVersionInterface
	// runtime says whether it is the runtime cluster.
	runtime bool
}

// target connects to the cluster of a Gardenlet.
func (r *reconciler) target(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet) (*target, error) {
	ref := gardenlet.Spec.KubeconfigSecretRef
	if ref == nil {
		version, err := discovery.NewDiscoveryClientForConfig(r.runtimeConfig)
		if err != nil {
			return nil, fmt.Errorf("client for the runtime cluster: %w", err)
		}
		return &target{api: r.runtimeAPI, client: r.runtimeCache, version: version, runtime: true}, nil
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: gardenlet.Namespace, Name: ref.Name}
	if err := r.virtualAPI.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: Secret %q, to which spec.kubeconfigSecretRef refers, does not exist", errKubeconfigGone, key)
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %q, to which spec.kubeconfigSecretRef refers: %w", key, err)
	}
	config, err := r.restConfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("kubeconfig in Secret %q, to which spec.kubeconfigSecretRef refers: %w", key, err)
	}
	connected, err := r.connect(config)
	if err != nil {
		return nil, &foreignError{fmt.Sprintf("the cluster of Secret %q, to which spec.kubeconfigSecretRef refers, cannot be connected to", key), err}
	}
	return connected, nil
}

// connect returns the cluster of a configuration.
func (r *reconciler) connect(config *rest.Config) (*target, error) {
	httpClient, err := kube.HTTPClientOfUser(config, r.Blocked)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, err
	}
	version, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &target{api: c, client: c, version: version}, nil
}

// restConfig returns the configuration of a kubeconfig.
func (v Values) restConfig(data []byte) (*rest.Config, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("the Secret has no key %q", kubeconfigKey)
	}
	config, err := kube.ConfigOfUser(data, v.Blocked)
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	kube.LimitResponses(config, kube.MaxShootResponse)
	return config, nil
}

// foreignError is an error with the answer of a server that the Gardenlet names. The answer is for the log of the operator only: it might come from
// a server that users cannot reach.
type foreignError struct {
	// what has failed, for the condition.
	what string
	err  error
}

// Error implements error.
func (e *foreignError) Error() string { return e.what + ": " + e.err.Error() }

// Unwrap returns the error of the server.
func (e *foreignError) Unwrap() error { return e.err }

// foreign returns an error of the cluster. It is a foreignError unless it is the runtime cluster.
func (t *target) foreign(err error) error {
	if err == nil || t.runtime {
		return err
	}
	return &foreignError{"requests to the cluster of spec.kubeconfigSecretRef fail", err}
}

// ensureNamespace creates the namespace of the gardenlet. In the runtime cluster it exists.
func (t *target) ensureNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.GardenNamespace, Labels: map[string]string{constants.GardenRole: constants.GardenRoleGarden},
	}}
	if err := t.api.Get(ctx, client.ObjectKeyFromObject(namespace), &corev1.Namespace{}); err == nil {
		return nil
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read namespace %q of the gardenlet: %w", namespace.Name, err)
	}
	if err := t.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %q of the gardenlet: %w", namespace.Name, err)
	}
	return nil
}
