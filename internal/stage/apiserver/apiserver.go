// Package apiserver is the stage that deploys the kube-apiserver, and changes how it encrypts data at rest. Its pods are created together
// with those of etcd: they wait for it by themselves.
package apiserver

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/flow"
)

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Values returns those of the kube-apiserver, when the task credentials is done. They have the desired encryption.
	Values func(ctx context.Context, replicas int32) (kubeapiserver.Values, error)
	// Replicas is the number of pods: 0 in a hibernated cluster.
	Replicas int32
	// Hibernated is whether nothing runs that can be waited for or asked.
	Hibernated bool
	// After are the tasks that it comes after besides credentials, IfPresent those that only some flows have.
	After, IfPresent []string
	// ReplacesKeys is whether pods of before sign or encrypt with a key that is replaced, so that their end is waited for.
	ReplacesKeys bool
	// Encryption is how data at rest changes.
	Encryption Encryption
	// Credentials are read after the task credentials.
	Credentials *credentials.Set
}

// Tasks returns the tasks that deploy the kube-apiserver.
func Tasks(in Inputs) []flow.Task {
	deploy := flow.Do("kube-apiserver", "Deploying kube-apiserver", Deploy(in, in.Replicas), "credentials").IfPresent(in.IfPresent...)
	deploy = deploy.IfPresent(stage.BeforeWebhooks...)
	deploy = deploy.IfPresent("encryption-key-backup") // then no data needs the old encryption key, which this removes
	deploy.After = append(deploy.After, in.After...)
	tasks := []flow.Task{deploy}
	if !in.Hibernated {
		tasks = append(tasks, flow.Await(stage.PodsTimeout, "kube-apiserver-ready", "Waiting until kube-apiserver is ready", in.ready, "kube-apiserver"))
	}
	if in.ReplacesKeys {
		tasks = append(tasks, flow.Await(stage.PodsTimeout, "old-kube-apiserver-gone", "Waiting until old pods of kube-apiserver have terminated", in.oldPodsGone,
			flow.Last(tasks)...))
	}
	return tasks
}

// Deploy returns what a task does that deploys the kube-apiserver with a number of pods.
func Deploy(in Inputs, replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		values, err := CurrentValues(ctx, in, replicas)
		if err != nil {
			return err
		}
		if values.Autoscaling, err = in.autoscaling(ctx, values.Autoscaling); err != nil {
			return err
		}
		objects, err := kubeapiserver.Objects(values)
		if err != nil {
			return err
		}
		return in.Run.Apply(ctx, objects...)
	}
}

// autoscaling prepares how the number of pods is scaled. Without autoscaling, the HorizontalPodAutoscaler is deleted first: it must not change what is
// applied next.
func (in Inputs) autoscaling(ctx context.Context, desired *kubeapiserver.Autoscaling) (*kubeapiserver.Autoscaling, error) {
	existing := &autoscalingv2.HorizontalPodAutoscaler{}
	key := client.ObjectKey{Namespace: in.Run.Namespace, Name: in.Run.Of.Name(kubeapiserver.Name)}
	if err := in.Run.SeedAPI.Get(ctx, key, existing); apierrors.IsNotFound(err) {
		return desired, nil
	} else if err != nil {
		return nil, fmt.Errorf("read HorizontalPodAutoscaler %q: %w", key.Name, err)
	}
	if desired != nil {
		return desired.KeepReplicas(existing), nil
	}
	if err := in.Run.SeedAPI.Delete(ctx, existing); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("delete HorizontalPodAutoscaler %q: %w", key.Name, err)
	}
	return nil, nil
}

// CurrentValues returns the values with which the kube-apiserver is deployed now. It encrypts as before this run until all its pods can
// read what is encrypted from now on.
func CurrentValues(ctx context.Context, in Inputs, replicas int32) (kubeapiserver.Values, error) {
	values, err := in.Values(ctx, replicas)
	if err != nil || in.Encryption.Former == nil {
		return values, err
	}
	readable, err := in.encryptionReadable(ctx)
	if err == nil && !readable {
		values.Encryption, err = in.Encryption.Former()
	}
	return values, err
}

func (in Inputs) ready(ctx context.Context) error {
	return in.Run.DeploymentReady(ctx, in.Run.Of.Name(kubeapiserver.Name))
}

// oldPodsGone waits until no kube-apiserver works with what it was given before.
func (in Inputs) oldPodsGone(ctx context.Context) error {
	return in.Run.OldPodsGone(ctx, kubeapiserver.Labels())
}
