// Package secretname makes the agent read another Secret when the label of its Node names one.
//
// It reads the agent's Node, writes the agent's configuration file, and restarts the process, which reads it.
package secretname

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

// passTimeout limits a pass, which writes a file.
const passTimeout = 10 * time.Second

// Values configure the controller.
type Values struct {
	// Client reads the Node from a cache.
	Client client.Client
	// Root is the machine.
	Root rootfs.Dir
	// ConfigFile is the agent's configuration file.
	ConfigFile string
	// SecretName is the name of the Secret that the agent reads.
	SecretName string
	// Restart ends the process, which systemd starts again.
	Restart func()
}

// reconciler changes the configuration.
type reconciler struct{ Values }

// Add adds the controller to a manager whose cache has no other Node than that of the agent.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v}
	c, err := controller.New("secret-name-change", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{},
		predicate.NewTypedPredicateFuncs(func(node *corev1.Node) bool { return r.other(node) != "" })))
}

// other is the name of the Secret in the label of a Node, if it is not the one that the agent reads.
func (r *reconciler) other(node *corev1.Node) string {
	if name := node.Labels[constants.WorkerPoolGardenerNodeAgentSecretName]; name != r.SecretName {
		return name
	}
	return ""
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name := r.other(node)
	if name == "" {
		return reconcile.Result{}, nil
	}
	data, err := r.Root.Read(r.ConfigFile)
	if err != nil {
		return reconcile.Result{}, err
	}
	config := &nodeagentconfigv1alpha1.NodeAgentConfiguration{}
	if err := yaml.Unmarshal(data, config); err != nil {
		return reconcile.Result{}, fmt.Errorf("read %s: %w", r.ConfigFile, err)
	}
	config.Controllers.OperatingSystemConfig.SecretName = name
	if data, err = yaml.Marshal(config); err != nil {
		return reconcile.Result{}, err
	}
	logf.FromContext(ctx).Info("Reading another Secret from now on", "before", r.SecretName, "now", name)
	if err := r.Root.Write(r.ConfigFile, data, 0o600); err != nil {
		return reconcile.Result{}, err
	}
	r.Restart()
	return reconcile.Result{}, nil
}
