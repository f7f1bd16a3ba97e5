// Package state has the content of ShootStates: what must survive the loss of a seed, and what the control plane takes along to another seed.
//
// Collect reads it in the seed. Source: compat/fleet.md, section 2.
package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/managedresource"
	"gardener.cloud/gardener/pkg/secrets"
)

// Collect reads the state of the control plane in a namespace of the seed. The BackupEntry is in no namespace. The workers are those of the Shoot.
func Collect(
	ctx context.Context, seedAPI client.Reader, namespace, backupEntry string, workers []corev1beta1.Worker,
) (*corev1beta1.ShootStateSpec, error) {
	spec, list := &corev1beta1.ShootStateSpec{}, &corev1.SecretList{}
	if err := seedAPI.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{secrets.LabelKeyPersist: "true"}); err != nil {
		return nil, fmt.Errorf("list Secrets: %w", err)
	}
	var err error
	if spec.Gardener, err = encodeSecrets(list.Items); err != nil {
		return nil, err
	}
	machines, err := collectMachines(ctx, seedAPI, namespace)
	if err != nil {
		return nil, err
	}
	if machines != nil {
		spec.Gardener = append(spec.Gardener, *machines)
	}
	runtimes := &extensionsv1alpha1.ContainerRuntimeList{}
	if err := seedAPI.List(ctx, runtimes, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list ContainerRuntimes: %w", err)
	}
	stale, err := encodeRuntimes(runtimes.Items, workers)
	if err != nil {
		return nil, err
	}
	spec.Gardener = append(spec.Gardener, stale...)
	if spec.Extensions, err = collectExtensions(ctx, seedAPI, namespace, backupEntry); err != nil {
		return nil, err
	}
	spec.Resources, err = collectResources(ctx, seedAPI, namespace, spec.Extensions)
	return spec, err
}

// collectMachines reads what is kept of the machines.
func collectMachines(ctx context.Context, seedAPI client.Reader, namespace string) (*corev1beta1.GardenerResourceData, error) {
	deployments, sets, machines := &machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{}
	for kind, list := range map[string]client.ObjectList{"MachineDeployment": deployments, "MachineSet": sets, "Machine": machines} {
		if err := seedAPI.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list kind %s: %w", kind, err)
		}
	}
	return encodeMachines(machineState(deployments.Items, sets.Items, machines.Items))
}

// collectExtensions reads the states of extension resources.
func collectExtensions(ctx context.Context, seedAPI client.Reader, namespace, backupEntry string) ([]corev1beta1.ExtensionResourceState, error) {
	states, err := namespacedStates(ctx, seedAPI, namespace)
	if err != nil {
		return nil, err
	}
	entry := &extensionsv1alpha1.BackupEntry{}
	if err := seedAPI.Get(ctx, client.ObjectKey{Name: backupEntry}, entry); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read BackupEntry %q: %w", backupEntry, err)
	}
	if state, ok := extensionState("BackupEntry", entry); ok {
		states = append(states, state)
	}
	sortStates(states)
	return states, nil
}

// namespacedStates reads the states of extension resources in a namespace, in no order.
func namespacedStates(ctx context.Context, seedAPI client.Reader, namespace string) ([]corev1beta1.ExtensionResourceState, error) {
	var states []corev1beta1.ExtensionResourceState
	for kind, list := range map[string]client.ObjectList{
		"ContainerRuntime":        &extensionsv1alpha1.ContainerRuntimeList{},
		"ControlPlane":            &extensionsv1alpha1.ControlPlaneList{},
		"DNSRecord":               &extensionsv1alpha1.DNSRecordList{},
		"Extension":               &extensionsv1alpha1.ExtensionList{},
		"Infrastructure":          &extensionsv1alpha1.InfrastructureList{},
		"Network":                 &extensionsv1alpha1.NetworkList{},
		"OperatingSystemConfig":   &extensionsv1alpha1.OperatingSystemConfigList{},
		"SelfHostedShootExposure": &extensionsv1alpha1.SelfHostedShootExposureList{},
		"Worker":                  &extensionsv1alpha1.WorkerList{},
	} {
		if err := seedAPI.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list kind %s: %w", kind, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(extensionsv1alpha1.Object); ok {
				if state, ok := extensionState(kind, object); ok {
					states = append(states, state)
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// CheckRestorable returns an error if an extension refers to an object that cannot be restored in another seed.
func CheckRestorable(ctx context.Context, seedAPI client.Reader, namespace string) error {
	states, err := namespacedStates(ctx, seedAPI, namespace)
	if err != nil {
		return err
	}
	for _, state := range states {
		for _, resource := range state.Resources {
			if ref := resource.ResourceRef; !Restorable(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Name) {
				return fmt.Errorf("%s %q refers to %s %q in status.resources, and only Secrets and ConfigMaps can be restored, other than those of ManagedResources", state.Kind, *state.Name, ref.Kind, ref.Name)
			} else if ref.Kind == "Secret" {
				secret := &corev1.Secret{}
				if err := seedAPI.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret); client.IgnoreNotFound(err) != nil {
					return err
				}
				if secret.Type == corev1.SecretTypeServiceAccountToken {
					return fmt.Errorf("%s %q refers to Secret %q in status.resources, and tokens of ServiceAccounts cannot be restored: they are for one seed",
						state.Kind, *state.Name, ref.Name)
				}
			}
		}
	}
	return nil
}

// Restorable says whether an object of a ShootState is created. Others could give permissions in a seed to whoever wrote the ShootState in the former one. So
// could the Secret of a ManagedResource: whoever writes it in this seed would keep what else is in it, and gardener-resource-manager apply that.
func Restorable(kind schema.GroupVersionKind, name string) bool {
	return kind.GroupVersion() == corev1.SchemeGroupVersion && slices.Contains([]string{"Secret", "ConfigMap"}, kind.Kind) &&
		!strings.HasPrefix(name, managedresource.SecretNamePrefix)
}

// collectResources reads the objects that extension resources refer to, each once.
func collectResources(
	ctx context.Context, seedAPI client.Reader, namespace string, states []corev1beta1.ExtensionResourceState,
) ([]corev1beta1.ResourceData, error) {
	var list []corev1beta1.ResourceData
	read := map[autoscalingv1.CrossVersionObjectReference]bool{}
	for _, state := range states {
		for _, resource := range state.Resources {
			ref := resource.ResourceRef
			if read[ref] {
				continue
			}
			read[ref] = true
			object := &unstructured.Unstructured{}
			object.SetAPIVersion(ref.APIVersion)
			object.SetKind(ref.Kind)
			if err := seedAPI.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, object); err != nil {
				return nil, fmt.Errorf("read %s %q, which %s %q refers to: %w", ref.Kind, ref.Name, state.Kind, *state.Name, err)
			}
			// These fields are set by the API server, or name objects that the next seed does not have.
			for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "ownerReferences", "finalizers"} {
				unstructured.RemoveNestedField(object.Object, "metadata", field)
			}
			unstructured.RemoveNestedField(object.Object, "status")
			data, err := json.Marshal(object.Object)
			if err != nil {
				return nil, fmt.Errorf("encode %s %q", ref.Kind, ref.Name) // the error itself may quote its data
			}
			list = append(list, corev1beta1.ResourceData{CrossVersionObjectReference: ref, Data: runtime.RawExtension{Raw: data}})
		}
	}
	sortResources(list)
	return list, nil
}

// Write writes the ShootState of a Shoot in the garden. The function returns the new state; it is called with the one that was saved before.
func Write(
	ctx context.Context, gardenAPI client.Client, shoot *corev1beta1.Shoot, now time.Time,
	change func(saved *corev1beta1.ShootStateSpec) (*corev1beta1.ShootStateSpec, error),
) error {
	saved := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, gardenAPI, saved, func() error {
		metav1.SetMetaDataAnnotation(&saved.ObjectMeta, constants.GardenerTimestamp, now.UTC().Format(time.RFC3339Nano))
		spec, err := change(&saved.Spec)
		if err == nil {
			saved.Spec = *spec
		}
		return err
	}); err != nil {
		return fmt.Errorf("write ShootState: %w", err)
	}
	return nil
}

func sortStates(states []corev1beta1.ExtensionResourceState) {
	slices.SortFunc(states, func(a, b corev1beta1.ExtensionResourceState) int { return strings.Compare(stateKey(a), stateKey(b)) })
}

func sortResources(resources []corev1beta1.ResourceData) {
	slices.SortFunc(resources, func(a, b corev1beta1.ResourceData) int { return strings.Compare(resourceKey(a), resourceKey(b)) })
}
