// Package controlplane is the stage for the clients of the kube-apiserver in the control plane, and for what every cluster contains. Pods
// start when there are tokens for them: before, they would crash and be restarted with growing delays.
package controlplane

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootsystem"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/flow"
)

// ResourceManagerResource is the ManagedResource with what gardener-resource-manager needs in the cluster.
const ResourceManagerResource = "shoot-core-gardener-resource-manager"

// Inputs are what the tasks read. All functions are called when the task credentials is done.
type Inputs struct {
	Run *stage.Run
	// Credentials are read after the task credentials.
	Credentials *credentials.Set
	// Replicas is the number of pods of each component.
	Replicas int32
	// ResourceManager returns the values of gardener-resource-manager.
	ResourceManager func(replicas int32) (resourcemanager.Values, error)
	// KubeControllerManager returns the values of kube-controller-manager.
	KubeControllerManager func(replicas int32) (kubecontrollermanager.Values, error)
	// KubeScheduler returns the values of kube-scheduler. Nil means that the cluster has none.
	KubeScheduler func(replicas int32) (kubescheduler.Values, error)
	// Resources returns the objects that the cluster contains, by the name of their ManagedResource, besides those of System. Nil means none.
	Resources func() (map[string][]client.Object, error)
	// System returns the values of what every shoot contains, given the kinds that its kube-apiserver serves. Nil means that it is no shoot.
	System func(served []*metav1.APIResourceList) (shootsystem.Values, error)
	// Accesses are the names of further components that have tokens.
	Accesses []string
	// Kubeconfigs are Secrets with kubeconfigs for extensions and the process that runs the flow, each with the URL of the kube-apiserver in it.
	Kubeconfigs map[string]string
	// Unused are objects beside the control plane that other settings have left.
	Unused []client.Object
	// Deletes is whether the cluster is being deleted, for which its controllers have to run.
	Deletes bool
	// Rotation is which credentials in the cluster itself are replaced.
	Rotation Rotation
}

// ResourceManagerTasks returns the tasks that deploy gardener-resource-manager. The first ones need the task kube-apiserver-ready.
func ResourceManagerTasks(in Inputs) []flow.Task {
	return []flow.Task{
		flow.Do("access-secrets", "Creating Secrets for ServiceAccount tokens of control plane components", in.applyAccessSecrets, "credentials"),
		flow.Do("tokens", "Requesting ServiceAccount tokens of control plane components", in.requestTokens, "access-secrets", "kube-apiserver-ready").
			IfPresent("old-kube-apiserver-gone"). // it would sign with the old key
			IfPresent("load-balancing"),          // which is for new pods
		flow.Do("resource-manager", "Deploying gardener-resource-manager", DeployResourceManager(in, in.Replicas), "tokens"),
		in.ready("resource-manager", resourcemanager.Name),
	}
}

// Tasks returns the tasks that deploy the components, and after them those for what the cluster contains. The first ones need the
// task kube-apiserver-ready.
func Tasks(in Inputs) []flow.Task {
	tasks := append(ResourceManagerTasks(in),
		flow.Do("kube-controller-manager", "Deploying kube-controller-manager", DeployKubeControllerManager(in, in.Replicas), "tokens"),
		in.ready("kube-controller-manager", kubecontrollermanager.Name),
	)
	if in.KubeScheduler != nil {
		tasks = append(tasks,
			flow.Do("kube-scheduler", "Deploying kube-scheduler", DeployKubeScheduler(in, in.Replicas), "tokens"),
			in.ready("kube-scheduler", kubescheduler.Name),
		)
	}
	if in.Run.Autoscalers != nil {
		tasks = append(tasks, flow.Do("former-autoscalers", "Deleting VerticalPodAutoscalers under former names", in.deleteFormerAutoscalers,
			"resource-manager", "kube-controller-manager").IfPresent("kube-scheduler", "vpn-seed-server"))
	}
	tasks = append(tasks, in.rotationTasks()...)
	every := "every " + in.Run.Of.Noun()
	return append(tasks,
		flow.Do("shoot-core", "Deploying resources that "+every+" contains", in.deploySystem, "kube-apiserver-ready"), // it is asked which kinds it serves
		flow.Await(stage.PodsTimeout, "shoot-core-applied", "Waiting until resources that "+every+" contains are applied", in.systemApplied,
			"shoot-core", "resource-manager"),
	)
}

// ready returns the task that waits for a Deployment after the task with an ID.
func (in Inputs) ready(id, deployment string) flow.Task {
	return flow.Await(stage.PodsTimeout, id+"-ready", "Waiting until "+deployment+" is ready", func(ctx context.Context) error {
		return in.Run.DeploymentReady(ctx, in.Run.Of.Name(deployment))
	}, id)
}

// DeployResourceManager returns what a task does that deploys gardener-resource-manager with a number of pods.
func DeployResourceManager(in Inputs, replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		values, err := in.ResourceManager(replicas)
		if err != nil {
			return err
		}
		objects, err := resourcemanager.Objects(values)
		if err != nil {
			return err
		}
		return in.Run.Apply(ctx, objects...)
	}
}

// DeployKubeControllerManager returns what a task does that deploys kube-controller-manager with a number of pods.
func DeployKubeControllerManager(in Inputs, replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		desired := replicas
		if !in.Deletes {
			var err error
			if desired, err = in.Run.ProtectedReplicas(ctx, in.Run.Of.Name(kubecontrollermanager.Name), replicas); err != nil {
				return err
			}
		}
		values, err := in.KubeControllerManager(desired)
		if err != nil {
			return err
		}
		objects, err := kubecontrollermanager.Objects(values)
		if err != nil {
			return err
		}
		return in.Run.Apply(ctx, objects...)
	}
}

// DeployKubeScheduler returns what a task does that deploys kube-scheduler with a number of pods.
func DeployKubeScheduler(in Inputs, replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		values, err := in.KubeScheduler(replicas)
		if err != nil {
			return err
		}
		objects, err := kubescheduler.Objects(values)
		if err != nil {
			return err
		}
		return in.Run.Apply(ctx, objects...)
	}
}
