package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/extension/worker"
)

// machineStateName is the name of the data with machines.
const machineStateName = constants.DataTypeMachineState

// secretData is a Secret in a ShootState. Its name and labels are beside it.
type secretData struct {
	Data      map[string][]byte `json:"data"`
	Immutable *bool             `json:"immutable,omitempty"`
	Type      corev1.SecretType `json:"type,omitempty"`
}

// encodeSecrets returns Secrets as they are in a ShootState, sorted by name.
func encodeSecrets(secrets []corev1.Secret) ([]corev1beta1.GardenerResourceData, error) {
	list := make([]corev1beta1.GardenerResourceData, 0, len(secrets))
	for _, secret := range secrets {
		raw, err := json.Marshal(secretData{Data: secret.Data, Immutable: secret.Immutable, Type: secret.Type})
		if err != nil {
			return nil, fmt.Errorf("encode Secret %q", secret.Name) // the error itself may quote its data
		}
		list = append(list, corev1beta1.GardenerResourceData{
			Name: secret.Name, Type: constants.DataTypeSecret, Labels: maps.Clone(secret.Labels), Data: runtime.RawExtension{Raw: raw},
		})
	}
	slices.SortFunc(list, func(a, b corev1beta1.GardenerResourceData) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Secrets returns the Secrets of a ShootState, for a namespace of the next seed. Errors do not quote data.
func Secrets(spec *corev1beta1.ShootStateSpec, namespace string) ([]*corev1.Secret, error) {
	var out []*corev1.Secret
	for _, entry := range spec.Gardener {
		if entry.Type != constants.DataTypeSecret {
			continue
		}
		content, err := decodeSecret(entry.Data.Raw)
		if err != nil {
			return nil, fmt.Errorf("Secret %q of the ShootState: %w", entry.Name, err)
		}
		out = append(out, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: entry.Name, Labels: maps.Clone(entry.Labels)},
			Type:       content.Type, Immutable: content.Immutable, Data: content.Data,
		})
	}
	return out, nil
}

// decodeSecret also reads what earlier versions have written: the data alone, of immutable Secrets.
func decodeSecret(raw []byte) (*secretData, error) {
	content := &secretData{}
	if err := json.Unmarshal(raw, content); err == nil && content.Data != nil {
		return content, nil
	}
	content = &secretData{Immutable: new(true), Type: corev1.SecretTypeOpaque}
	if err := json.Unmarshal(raw, &content.Data); err != nil || content.Data == nil {
		return nil, errors.New("its data is invalid") // the error itself may quote it
	}
	return content, nil
}

// machineState returns what is kept of machines.
func machineState(
	deployments []machinev1alpha1.MachineDeployment, sets []machinev1alpha1.MachineSet, machines []machinev1alpha1.Machine,
) *worker.State {
	state := &worker.State{}
	for _, deployment := range deployments {
		kept := &worker.DeploymentState{Replicas: deployment.Spec.Replicas}
		for _, set := range sets {
			if !ownedBy(&set.ObjectMeta, "MachineDeployment", deployment.Name) {
				continue
			}
			kept.MachineSets = append(kept.MachineSets, machinev1alpha1.MachineSet{ObjectMeta: keptOf(&set.ObjectMeta), Spec: set.Spec})
			for _, machine := range machines {
				if ownedBy(&machine.ObjectMeta, "MachineSet", set.Name) && (machine.Labels[machinev1alpha1.NodeLabelKey] != "" || machine.Spec.ProviderID != "") {
					kept.Machines = append(kept.Machines, keptMachine(&machine))
				}
			}
		}
		if len(kept.MachineSets) == 0 {
			continue
		}
		sortMachines(kept)
		if state.MachineDeployments == nil {
			state.MachineDeployments = map[string]*worker.DeploymentState{}
		}
		state.MachineDeployments[deployment.Name] = kept
	}
	return state
}

// keptMachine returns what is kept of a machine. One that is being deleted exists still, so that its set has one too many on the next seed: it must be the one
// that is deleted then.
func keptMachine(machine *machinev1alpha1.Machine) machinev1alpha1.Machine {
	kept := machinev1alpha1.Machine{ObjectMeta: keptOf(&machine.ObjectMeta), Spec: machine.Spec}
	if machine.DeletionTimestamp != nil {
		kept.Annotations = maps.Clone(kept.Annotations)
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, machinev1alpha1.MachinePriority, "1")
	}
	return kept
}

func sortMachines(d *worker.DeploymentState) {
	slices.SortFunc(d.MachineSets, func(a, b machinev1alpha1.MachineSet) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Machines, func(a, b machinev1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
}

// ownedBy reports whether an object has an owner of a kind and name.
func ownedBy(object *metav1.ObjectMeta, kind, name string) bool {
	return slices.ContainsFunc(object.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == kind && o.Name == name })
}

// keptOf returns the metadata that another seed can use.
func keptOf(object *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace, Labels: object.Labels, Annotations: object.Annotations}
}

// encodeMachines returns machines as they are in a ShootState, or nil if there are none.
func encodeMachines(state *worker.State) (*corev1beta1.GardenerResourceData, error) {
	if len(state.MachineDeployments) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	raw, err := worker.EncodeState(state)
	if err != nil {
		return nil, err
	}
	return &corev1beta1.GardenerResourceData{Name: machineStateName, Type: constants.DataTypeMachineState, Data: runtime.RawExtension{Raw: raw}}, nil
}

// Machines returns the state of machines for status.state of the Worker, which is that of the ShootState, or nil if there is none.
func Machines(spec *corev1beta1.ShootStateSpec) (*runtime.RawExtension, error) {
	at := machinesIndex(spec)
	if at < 0 {
		return nil, nil //nolint:nilnil // documented
	}
	if _, err := machinesOf(spec); err != nil {
		return nil, err
	}
	return spec.Gardener[at].Data.DeepCopy(), nil
}

// encodeRuntimes returns the ContainerRuntimes that no worker pool has any more. What they have in the shoot can only be deleted while it is awake, by an
// extension that finds them on the next seed.
func encodeRuntimes(runtimes []extensionsv1alpha1.ContainerRuntime, workers []corev1beta1.Worker) ([]corev1beta1.GardenerResourceData, error) {
	var list []corev1beta1.GardenerResourceData
	for i := range runtimes {
		runtimeObject := &runtimes[i]
		if slices.ContainsFunc(workers, func(w corev1beta1.Worker) bool { return hasRuntime(&w, &runtimeObject.Spec) }) {
			continue
		}
		raw, err := json.Marshal(runtimeObject.Spec)
		if err != nil {
			return nil, fmt.Errorf("encode ContainerRuntime %q", runtimeObject.Name) // the error itself may quote its configuration
		}
		list = append(list, corev1beta1.GardenerResourceData{
			Name: constants.DataTypeContainerRuntime + "-" + runtimeObject.Name, Type: constants.DataTypeContainerRuntime, Data: runtime.RawExtension{Raw: raw},
		})
	}
	return list, nil
}

// hasRuntime says whether a worker pool has a runtime.
func hasRuntime(worker *corev1beta1.Worker, spec *extensionsv1alpha1.ContainerRuntimeSpec) bool {
	return worker.Name == spec.WorkerPool.Name && worker.CRI != nil &&
		slices.ContainsFunc(worker.CRI.ContainerRuntimes, func(r corev1beta1.ContainerRuntime) bool { return r.Type == spec.Type })
}

// ContainerRuntimes returns those of a ShootState that no worker pool had any more. One that cannot be read is left out: it does not keep a shoot from running.
func ContainerRuntimes(spec *corev1beta1.ShootStateSpec) []extensionsv1alpha1.ContainerRuntimeSpec {
	var list []extensionsv1alpha1.ContainerRuntimeSpec
	for _, entry := range spec.Gardener {
		if entry.Type != constants.DataTypeContainerRuntime {
			continue
		}
		found := extensionsv1alpha1.ContainerRuntimeSpec{}
		if err := json.Unmarshal(entry.Data.Raw, &found); err == nil && found.Type != "" && found.WorkerPool.Name != "" {
			list = append(list, found)
		}
	}
	return list
}

// machinesIndex is where a ShootState has its machines, less than 0 if it has none.
func machinesIndex(spec *corev1beta1.ShootStateSpec) int {
	return slices.IndexFunc(spec.Gardener, func(d corev1beta1.GardenerResourceData) bool { return d.Type == constants.DataTypeMachineState })
}

// machinesOf returns the machines of a ShootState, decoded.
func machinesOf(spec *corev1beta1.ShootStateSpec) (*worker.State, error) {
	at := machinesIndex(spec)
	if at < 0 {
		return &worker.State{}, nil
	}
	decoded, err := worker.DecodeState(spec.Gardener[at].Data.Raw)
	if err != nil {
		return nil, fmt.Errorf("machines of the ShootState: %w", err)
	}
	return decoded, nil
}

// extensionState returns the state of an extension resource, or false if it has none.
func extensionState(kind string, object extensionsv1alpha1.Object) (corev1beta1.ExtensionResourceState, bool) {
	status := object.GetExtensionStatus()
	if status.GetState() == nil && len(status.GetResources()) == 0 || object.GetDeletionTimestamp() != nil {
		return corev1beta1.ExtensionResourceState{}, false
	}
	state := corev1beta1.ExtensionResourceState{Kind: kind, Name: new(object.GetName()), State: status.GetState(), Resources: status.GetResources()}
	if o, ok := object.(*extensionsv1alpha1.OperatingSystemConfig); ok {
		state.Purpose = new(string(o.Spec.Purpose))
	}
	return state, true
}

// Extension returns the state of an extension resource, or nil if it has none.
func Extension(spec *corev1beta1.ShootStateSpec, kind, name string) *corev1beta1.ExtensionResourceState {
	for i := range spec.Extensions {
		if spec.Extensions[i].Kind == kind && ptr.Deref(spec.Extensions[i].Name, "") == name {
			return &spec.Extensions[i]
		}
	}
	return nil
}

// Merge returns a saved state, updated and extended by what was collected when part of the objects was deleted already. ContainerRuntimes that were saved because
// no worker pool has them, and do not exist any more, were deleted for good unless the resources of nodes are being released. The same holds for machines of a
// MachineDeployment that exists.
func Merge(saved, collected *corev1beta1.ShootStateSpec, nodesReleased bool) (*corev1beta1.ShootStateSpec, error) {
	if !nodesReleased {
		saved = saved.DeepCopy()
		saved.Gardener = slices.DeleteFunc(saved.Gardener, func(d corev1beta1.GardenerResourceData) bool { return d.Type == constants.DataTypeContainerRuntime })
	}
	merged := &corev1beta1.ShootStateSpec{
		Gardener:   upsert(saved.Gardener, collected.Gardener, func(d corev1beta1.GardenerResourceData) string { return d.Name }),
		Extensions: upsert(saved.Extensions, collected.Extensions, stateKey),
		Resources:  upsert(saved.Resources, collected.Resources, resourceKey),
	}
	sortStates(merged.Extensions)
	sortResources(merged.Resources)
	before, err := machinesOf(saved)
	if err != nil {
		return nil, err
	}
	after, err := machinesOf(collected)
	if err != nil {
		return nil, err
	}
	machines, err := encodeMachines(mergeMachines(before, after, nodesReleased))
	if at := machinesIndex(merged); at >= 0 && machines != nil {
		merged.Gardener[at] = *machines
	}
	return merged, err
}

// mergeMachines returns the machines that were saved and those that were collected, deployment by deployment. What was saved of a deployment that still exists
// counts only while the resources of nodes are being released: then, its Machines are being removed, which nothing has changed since they were saved.
func mergeMachines(saved, collected *worker.State, nodesReleased bool) *worker.State {
	merged := &worker.State{MachineDeployments: maps.Clone(saved.MachineDeployments)}
	for name, after := range collected.MachineDeployments {
		if nodesReleased && saved.MachineDeployments[name] != nil {
			continue
		}
		if merged.MachineDeployments == nil {
			merged.MachineDeployments = map[string]*worker.DeploymentState{}
		}
		merged.MachineDeployments[name] = after
	}
	return merged
}

func upsert[T any](saved, collected []T, key func(T) string) []T {
	out := slices.Clone(collected)
	for _, entry := range saved {
		if !slices.ContainsFunc(collected, func(c T) bool { return key(c) == key(entry) }) {
			out = append(out, entry)
		}
	}
	return out
}

func stateKey(s corev1beta1.ExtensionResourceState) string {
	return s.Kind + "/" + ptr.Deref(s.Name, "") + "/" + ptr.Deref(s.Purpose, "")
}

func resourceKey(r corev1beta1.ResourceData) string {
	return r.APIVersion + "/" + r.Kind + "/" + r.Name
}
