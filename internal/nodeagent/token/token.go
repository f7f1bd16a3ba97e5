// Package token writes the tokens in Secrets of the shoot to files of the machine, for processes outside of pods.
//
// It reads the Secrets that the agent's configuration names, and writes files. Source: concepts.txt, Gardener Node Agent,
// "Token Controller".
package token

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

const (
	// passTimeout limits a pass: a request and a file.
	passTimeout = time.Minute
	// retryAfter is the period in which a Secret is read that does not exist or has no token yet.
	retryAfter = 15 * time.Second
)

// Values configure the controller.
type Values struct {
	// API reads Secrets from the API server.
	API client.Reader
	// Root is the machine.
	Root rootfs.Dir
	// Configs are the Secrets, and the file for the token of each.
	Configs []nodeagentconfigv1alpha1.TokenSecretSyncConfig
	// SyncPeriod is how often Secrets are read.
	SyncPeriod time.Duration
}

// reconciler writes tokens. Secrets are read periodically and not watched: a cache would need a watch for each, and tokens are renewed
// long before they expire.
type reconciler struct{ Values }

// Add adds the controller to a manager, if there are Secrets.
func Add(mgr manager.Manager, v Values) error {
	if len(v.Configs) == 0 {
		return nil
	}
	c, err := controller.New("token", mgr, controller.Options{Reconciler: &reconciler{Values: v}, MaxConcurrentReconciles: len(v.Configs)})
	if err != nil {
		return err
	}
	start := make(chan event.GenericEvent, len(v.Configs))
	for _, config := range v.Configs {
		start <- event.GenericEvent{Object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: config.SecretName,
		}}}
	}
	return c.Watch(source.Channel(start, &handler.EnqueueRequestForObject{}))
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	found, err := r.write(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !found {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// Sync writes all tokens at once, as after a rotation of the key that signs them. Secrets without a token are skipped.
func Sync(ctx context.Context, v Values) error {
	for _, config := range v.Configs {
		if _, err := v.write(ctx, config.SecretName); err != nil {
			return err
		}
	}
	return nil
}

// write writes the token of a Secret to its files. It returns false if there is none.
func (v Values) write(ctx context.Context, name string) (bool, error) {
	secret := &corev1.Secret{}
	if err := v.API.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: name}, secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("read Secret %q: %w", name, err)
	}
	token := secret.Data["token"]
	if len(token) == 0 {
		return false, nil
	}
	for _, config := range v.Configs {
		if config.SecretName != name {
			continue
		}
		wrote, err := v.Root.Update(config.Path, token, 0o600)
		if err != nil {
			return false, err
		}
		if wrote {
			logf.FromContext(ctx).Info("Wrote token", "path", config.Path)
		}
	}
	return true, nil
}
