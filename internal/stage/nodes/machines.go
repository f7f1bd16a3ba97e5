package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// reconcileSystemConfigs writes the OperatingSystemConfigs of all pools and waits for them: their extensions say how machines become nodes.
func (in Inputs) reconcileSystemConfigs(ctx context.Context, result *pools) error {
	values, err := in.OperatingSystemConfigs()
	if err != nil {
		return err
	}
	objects, err := operatingsystemconfig.Objects(values)
	if err != nil {
		return err
	}
	list := make([]Pool, 0, len(values.Pools))
	for _, p := range values.Pools {
		list = append(list, Pool{Pool: p})
	}
	extend := make([]func(context.Context) error, 0, len(objects))
	for _, object := range objects {
		want := object.(*extensionsv1alpha1.OperatingSystemConfig) //nolint:forcetypeassert // the component renders nothing else
		obj := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
		index := slices.IndexFunc(list, func(p Pool) bool {
			return operatingsystemconfig.Name(p.Worker.Name, p.Hash, want.Spec.Purpose) == want.Name
		})
		if want.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
			list[index].Provision = obj
		} else {
			list[index].Reconcile = obj
		}
		extend = append(extend, func(ctx context.Context) error {
			return stage.ExtendAndAwait(ctx, in.Run, obj, func(obj *extensionsv1alpha1.OperatingSystemConfig) {
				class := obj.Spec.Class
				obj.Labels, obj.Spec = workload.Merge(obj.Labels, want.Labels), want.Spec // webhooks and operators may have added labels
				obj.Spec.Class = class
			})
		})
	}
	if err := flow.Parallel(ctx, extend...); err != nil {
		return err
	}
	result.list = list
	return nil
}

// deployWorker writes the Worker: the extension for the infrastructure creates, changes and deletes machines.
func (in Inputs) deployWorker(ctx context.Context, pools *pools) error {
	if in.UpdatesInPlace {
		if err := in.Run.ManagedApplied(ctx, operatingsystemconfig.ManagedResourceName); err != nil {
			return err
		}
	}
	set, err := in.Worker(pools.list)
	if err != nil {
		return err
	}
	before := in.Run.Worker()
	if err := stage.WriteExtension(ctx, in.Run, in.Run.Worker(), func(worker *extensionsv1alpha1.Worker) {
		before = worker.DeepCopy()
		set(worker)
	}); err != nil {
		return err
	}
	if in.Result != nil {
		in.Result.Worker = before
	}
	return nil
}

// awaitWorker waits until the machines are as desired, if the run waits for readiness. In any case it waits until machines of another seed are known here: if the
// next operation started the machine-controller-manager before, that would create others.
func (in Inputs) awaitWorker(ctx context.Context) error {
	worker := in.Run.Worker()
	switch {
	case !in.Run.SkipReadiness:
		if err := extensionobject.Await(ctx, in.Run.ExtensionValues(), worker); err != nil || !in.Restores {
			return err
		}
	case in.Restores:
		if err := in.awaitMachinesKnown(ctx, worker); err != nil {
			return err
		}
	default:
		return nil
	}
	return in.forgetMachines(ctx, worker)
}

// forgetMachines removes the state of a restored Worker, as not all extensions do: machines change, and it would be restored once more after the next move.
func (in Inputs) forgetMachines(ctx context.Context, worker *extensionsv1alpha1.Worker) error {
	if worker.Status.State == nil {
		return nil
	}
	before := worker.DeepCopy()
	worker.Status.State = nil
	if err := in.Run.SeedAPI.Status().Patch(ctx, worker, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("remove the state of the restored Worker: %w", err)
	}
	return nil
}

// errMachinesKnown ends a wait for a Worker.
var errMachinesKnown = errors.New("the machines are known")

// awaitMachinesKnown waits until the machines of a restored Worker are known, and reads it. The machine-controller-manager is watched beside the Worker, as not all
// extensions report then.
func (in Inputs) awaitMachinesKnown(ctx context.Context, worker *extensionsv1alpha1.Worker) error {
	waiting, end := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := stage.AwaitOne(waiting, in.Run.SeedAPI, in.Run.Namespace, machinecontrollermanager.Name, &appsv1.DeploymentList{}, func(manager *appsv1.Deployment) error {
			current := in.Run.Worker()
			if err := in.Run.SeedAPI.Get(waiting, client.ObjectKeyFromObject(current), current); err != nil {
				return err
			}
			if !machinesKnown(current, manager) {
				return errors.New("the machines are not known yet")
			}
			return nil
		}); err == nil {
			end(errMachinesKnown)
		}
	})
	err := extensionobject.AwaitReport(waiting, in.Run.ExtensionValues(), worker, func(current extensionsv1alpha1.Object) bool {
		return machinesKnown(current, &appsv1.Deployment{})
	})
	end(nil)
	watching.Wait()
	if errors.Is(err, errMachinesKnown) {
		return in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(worker), worker)
	}
	return err
}

// machinesKnown is whether the extension of a Worker has restored its machines, whether they are ready or not. Then it starts the machine-controller-manager, which
// the gardenlet has deployed without pods, and our library removes the state.
func machinesKnown(worker extensionsv1alpha1.Object, manager *appsv1.Deployment) bool {
	status := worker.GetExtensionStatus()
	last := status.GetLastOperation()
	_, protects := manager.Annotations[constants.DependencyWatchdogMeltdownProtectionActive] // it has stopped again what was started
	return extensionobject.Restored(worker) || last != nil && last.Type == corev1beta1.LastOperationTypeRestore &&
		(status.GetState() == nil || ptr.Deref(manager.Spec.Replicas, 0) > 0 || protects)
}

// deployNodeAgents writes the configuration of gardener-node-agents, also for nodes that are about to be replaced.
func (in Inputs) deployNodeAgents(ctx context.Context) error {
	all := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := in.Run.SeedAPI.List(ctx, all, client.InNamespace(in.Run.Namespace)); err != nil {
		return fmt.Errorf("list OperatingSystemConfigs: %w", err)
	}
	var objects []client.Object
	access := operatingsystemconfig.AccessValues{Authorizer: true}
	for i := range all.Items {
		osc := &all.Items[i]
		if osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile || osc.DeletionTimestamp != nil {
			continue
		}
		name := osc.Labels[constants.WorkerPool]
		hash := operatingsystemconfig.HashOf(name, osc.Name)
		secret, err := operatingsystemconfig.NodeAgentSecret(name, hash, osc, func(name, key string) ([]byte, error) {
			content := &corev1.Secret{}
			if err := in.Run.SeedAPI.Get(ctx, client.ObjectKey{Namespace: in.Run.Namespace, Name: name}, content); err != nil {
				return nil, err
			}
			return content.Data[key], nil
		})
		if err != nil {
			return err
		}
		objects, access.SecretNames = append(objects, secret), append(access.SecretNames, secret.Name)
	}
	return in.Run.ApplyManaged(ctx, operatingsystemconfig.ManagedResourceName, append(objects, operatingsystemconfig.Access(access)...)...)
}

// awaitNodeAgents waits until gardener-node-agents report that their nodes have the current configuration. They apply it one after the
// other, within minutes.
func (in Inputs) awaitNodeAgents(ctx context.Context) error {
	if err := in.Run.ManagedApplied(ctx, operatingsystemconfig.ManagedResourceName); err != nil {
		return err
	}
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	secrets := &corev1.SecretList{}
	if err := shootClient.List(ctx, secrets, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleOperatingSystemConfig,
	}); err != nil {
		return fmt.Errorf("list Secrets with configuration of gardener-node-agents: %w", err)
	}
	desired := map[string]string{}
	for i := range secrets.Items {
		desired[secrets.Items[i].Name] = secrets.Items[i].Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumDownloadedOperatingSystemConfig]
	}
	return kube.Await(ctx, shootClient, &corev1.NodeList{}, func(nodes []*corev1.Node) error { return outdated(nodes, desired) }, nil)
}

// outdated returns an error that names the nodes which have not applied their desired configuration, given its checksum by the name of
// its Secret. Nodes that are about to be replaced, or wait for their update in place, do not count.
func outdated(nodes []*corev1.Node, desired map[string]string) error {
	var names []string
	for _, node := range nodes {
		want := desired[node.Labels[constants.WorkerPoolGardenerNodeAgentSecretName]]
		waits := node.Labels[machinev1alpha1.NodeCandidateForUpdate] == "true"
		if want == "" || node.DeletionTimestamp != nil || node.Spec.Unschedulable || waits {
			continue
		}
		if node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig] != want {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%d nodes do not have their new configuration yet: %s", len(names), strings.Join(names[:min(len(names), stage.Named)], ", "))
}

// deleteStaleSystemConfigs deletes OperatingSystemConfigs from which no machine is created any more.
func (in Inputs) deleteStaleSystemConfigs(ctx context.Context, pools *pools) error {
	all := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := in.Run.SeedAPI.List(ctx, all, client.InNamespace(in.Run.Namespace)); err != nil {
		return fmt.Errorf("list OperatingSystemConfigs: %w", err)
	}
	var stale []func(context.Context) error
	for i := range all.Items {
		osc := &all.Items[i]
		if !slices.ContainsFunc(pools.list, func(p Pool) bool { return osc.Name == p.Provision.Name || osc.Name == p.Reconcile.Name }) {
			stale = append(stale, func(ctx context.Context) error { return in.Run.DeleteExtension(ctx, osc) })
		}
	}
	if len(stale) == 0 {
		return nil
	}
	if err := flow.Parallel(ctx, stale...); err != nil {
		return err
	}
	return in.deployNodeAgents(ctx)
}
