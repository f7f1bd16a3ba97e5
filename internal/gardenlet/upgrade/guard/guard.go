// Package guard decides whether a gardenlet that has updated itself works, and makes the update undone if it does not.
//
// It is a process of its own, with the image and the permissions of the gardenlet before: neither the new gardenlet, which may be broken in any way,
// nor the old one, which is replaced, can do it. It reads the Deployment, the pods and the Lease of the gardenlet in its seed. In the record of the
// update it writes the result. If the new gardenlet does not work, it applies the objects of before. It needs no access to the garden. In the end it
// deletes its ClusterRole, to which all its objects belong.
package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
)

// Name is the name of the command.
const Name = gardenlet.GuardName

type options struct{ kubeconfig string }

// NewCommand returns the command that runs the guard until its context ends.
func NewCommand() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:           Name,
		Short:         "Roll an update of the gardenlet back if it does not work",
		Long:          "Rolls an update of the gardenlet back if it does not work. A gardenlet that updates itself runs it, and it ends with the update.",
		Example:       "  " + Name,
		Version:       process.Version(),
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := process.NewLogger(cmd.ErrOrStderr(), "info", "json")
			logf.SetLogger(log)
			klog.SetLogger(log)
			err := component().Run(cmd.Context(), &o, log)
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "error:", err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; by default the cluster of the pod")
	return cmd
}

// component describes the process.
func component() process.Component[options] {
	return process.Component[options]{
		Name: Name,
		Settings: func(o *options) process.Settings {
			return process.Settings{
				Client:   componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: o.kubeconfig, QPS: 20, Burst: 50},
				LogLevel: "info", LogFormat: "json", Health: &process.Server{Port: healthPort},
			}
		},
		Options: func(_ *options, options *manager.Options) { options.Cache.ByObject = Cache() },
		Wire: func(_ context.Context, p *process.Process, _ *options) error {
			return Add(p.Manager, clock.RealClock{})
		},
	}
}

// Cache has only what the guard reads.
func Cache() map[client.Object]cache.ByObject {
	namespace := map[string]cache.Config{constants.GardenNamespace: {}}
	named := func(name string) cache.ByObject {
		return cache.ByObject{Namespaces: namespace, Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	}
	return map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: named(gardenlet.Name), &corev1.Secret{}: named(trial.SecretName),
		&corev1.Pod{}: {Namespaces: namespace}, &coordinationv1.Lease{}: {Namespaces: namespace},
	}
}

// Add adds the controller to a manager with the cache of Cache, whose cluster is the seed.
func Add(mgr manager.Manager, clk clock.PassiveClock) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: trial.Key()}}
	})
	return builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&corev1.Secret{}, all).Watches(&appsv1.Deployment{}, all).Watches(&corev1.Pod{}, all).Watches(&coordinationv1.Lease{}, all).
		Complete(&reconciler{seedCache: mgr.GetClient(), seedAPI: mgr.GetAPIReader(), clock: clk})
}

// passTimeout is the end of a pass, and endTimeout that of the last request, which ends the process.
const (
	passTimeout = time.Minute
	endTimeout  = 10 * time.Second
)

type reconciler struct {
	seedCache client.Client
	seedAPI   client.Reader
	clock     clock.PassiveClock
	checks    trial.Checks
}

// Reconcile checks the new gardenlet, and ends the trial when it is known whether it works.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	t, err := trial.Read(ctx, r.seedAPI)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch t.State {
	case trial.Preparing:
		return reconcile.Result{}, nil // the gardenlet begins when this process is ready
	case trial.Trying:
		o, err := trial.Observe(ctx, r.seedCache, t)
		if err != nil {
			return reconcile.Result{}, err
		}
		now := r.clock.Now()
		v := trial.Judge(t, o, now).Checked(r.checks.Since(trial.Key(), now), now)
		if !v.Works && v.Failed == "" {
			return reconcile.Result{RequeueAfter: v.RecheckIn}, nil
		}
		t.State, t.Reason = trial.Succeeded, v.Failed
		if v.Failed != "" {
			t.State, t.Since = trial.RollingBack, metav1.NewTime(now)
		} else {
			t.Previous = nil
		}
		logf.FromContext(ctx).Info("Deciding about the new gardenlet", "state", t.State, "reason", t.Reason)
		return reconcile.Result{RequeueAfter: time.Nanosecond}, t.Write(ctx, r.seedCache)
	case trial.RollingBack:
		logf.FromContext(ctx).Info("Applying the objects of the gardenlet before", "reason", t.Reason)
		if err := trial.Restore(ctx, r.seedCache, t.Previous); err != nil {
			return reconcile.Result{}, errors.Join(err, r.recordError(ctx, t, err))
		}
		t.State, t.RestoreError = trial.RolledBack, ""
		if err := t.Write(ctx, r.seedCache); err != nil {
			return kube.Result(err)
		}
	case trial.Succeeded, trial.RolledBack:
	}
	return reconcile.Result{}, r.end(ctx)
}

// recordError records why the objects before cannot be applied, for the gardenlet that reports it. It works after the end of the pass too.
func (r *reconciler) recordError(ctx context.Context, t *trial.Trial, restore error) error {
	if t.RestoreError == restore.Error() {
		return nil
	}
	t.RestoreError = restore.Error()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return t.Write(ctx, r.seedCache)
}

// end deletes the ClusterRole of the guard. Its other objects, this process among them, belong to it.
func (r *reconciler) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: gardenlet.GuardRole}}
	if err := r.seedCache.Delete(ctx, role); client.IgnoreNotFound(err) != nil {
		return errors.Join(errors.New("the guard cannot delete itself"), err)
	}
	return nil
}
