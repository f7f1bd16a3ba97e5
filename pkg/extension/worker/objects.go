package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

const (
	// userDataKey is the key of the user data in the Secret of a class.
	userDataKey = "userData"
	// machineNameLabel is the label of machines with the name of their deployment.
	machineNameLabel = "name"
	// purposeMachineClass is the purpose of the Secrets of classes.
	purposeMachineClass = "machineclass"
	// requestAnnotation on a MachineDeployment of a pool that is updated in place is the time of the request that its class is from.
	requestAnnotation = "worker.gardener.cloud/requested-at"
	// defaultArchitecture is the architecture of pools that set none.
	defaultArchitecture = "amd64"
)

// machines are the objects for the machines of a pool in one zone.
type machines struct {
	class      *machinev1alpha1.MachineClass
	secret     *corev1.Secret
	deployment *machinev1alpha1.MachineDeployment
	published  extensionsv1alpha1.MachineDeployment
}

// render returns the machines of all pools. The replicas of existing deployments are kept within their limits, as the cluster-autoscaler may scale
// them.
func (a *Actuator) render(
	ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, existing map[string]*machinev1alpha1.MachineDeployment,
) ([]machines, error) {
	var all []machines
	for i := range worker.Spec.Pools {
		pool := &worker.Spec.Pools[i]
		at := field.NewPath("spec", "pools").Index(i)
		userData, err := a.userData(ctx, worker.Namespace, pool.UserDataSecretRef)
		if err != nil {
			return nil, fmt.Errorf("user data of pool %q: %w", pool.Name, err)
		}
		zones := pool.Zones
		if len(zones) == 0 {
			zones = []string{""}
		}
		annotations, err := extension.DeploymentAnnotations(pool, cluster)
		if err != nil {
			return nil, err
		}
		for zone := range zones {
			class, err := a.Delegate.Class(ctx, worker, cluster, pool, zones[zone])
			if err != nil {
				return nil, fmt.Errorf("pool %q: %w", pool.Name, err)
			}
			hash, err := extension.WorkerPoolHash(pool, cluster, class.Hash...)
			if err != nil {
				return nil, err
			}
			name, own := deploymentName(worker, pool, zone, zones), maps.Clone(annotations)
			if requested := worker.Annotations[constants.GardenerTimestamp]; requested != "" && pool.UpdateStrategy.InPlace() {
				// The Cluster may have a rotation that has begun since: nodes get their new credentials before the next request, and must not be drained until then.
				if before := existing[name]; before != nil && before.Annotations[requestAnnotation] == requested {
					hash = strings.TrimPrefix(before.Spec.Template.Spec.Class.Name, name+"-")
					own[extension.AnnotationInPlaceHash] = before.Annotations[extension.AnnotationInPlaceHash]
				}
				own[requestAnnotation] = requested
			}
			m := part(worker, cluster, pool, zone, zones, hash, existing)
			if m.class.NodeTemplate.Capacity, err = capacityOf(pool, cluster, class.Capacity, at.Child("machineType")); err != nil {
				return nil, err
			}
			if pool.NodeTemplate != nil {
				m.class.NodeTemplate.VirtualCapacity = pool.NodeTemplate.VirtualCapacity
			}
			if m.class.ProviderSpec, err = encode(class.ProviderSpec); err != nil {
				return nil, err
			}
			m.deployment.Annotations = own
			m.class.Provider, m.class.CredentialsSecretRef = class.Provider, class.CredentialsSecretRef
			m.secret.Data = map[string][]byte{userDataKey: userData}
			maps.Copy(m.secret.Data, class.SecretData)
			all = append(all, m)
		}
	}
	return all, nil
}

// encode returns an object of the delegate.
func encode(object any) (runtime.RawExtension, error) {
	raw, err := json.Marshal(object)
	return runtime.RawExtension{Raw: raw}, err
}

// userData returns the content of a key of a Secret.
func (a *Actuator) userData(ctx context.Context, namespace string, ref corev1.SecretKeySelector) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := a.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", ref.Name, err)
	}
	content, ok := secret.Data[ref.Key]
	if !ok {
		return nil, fmt.Errorf("Secret %[2]q has no key %[1]q", ref.Key, ref.Name)
	}
	return content, nil
}

// deploymentName is the name of the MachineDeployment of one zone of a pool.
func deploymentName(worker *extensionsv1alpha1.Worker, pool *extensionsv1alpha1.WorkerPool, zone int, zones []string) string {
	name := worker.Namespace + "-" + pool.Name
	if zones[zone] != "" {
		name = fmt.Sprintf("%s-z%d", name, zone+1)
	}
	return name
}

// part returns the objects for one zone of a pool.
func part(
	worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, pool *extensionsv1alpha1.WorkerPool, zone int, zones []string, hash string,
	existing map[string]*machinev1alpha1.MachineDeployment,
) machines {
	name := deploymentName(worker, pool, zone, zones)
	labels := map[string]string{}
	for key, value := range pool.Labels {
		labels[key] = value
	}
	if zones[zone] != "" {
		labels[corev1.LabelTopologyZone] = zones[zone]
		labels[corev1.LabelTopologyRegion] = worker.Spec.Region
	}
	className := name + "-" + hash
	minimum, maximum := extension.Share(pool.Minimum, zone, len(zones)), extension.Share(pool.Maximum, zone, len(zones))
	replicas := minimum
	if deployment := existing[name]; deployment != nil {
		replicas = min(max(deployment.Spec.Replicas, minimum), maximum)
	}
	if hibernated(cluster) {
		replicas = 0
	}
	surge, unavailable := extension.ShareOf(pool.MaxSurge, zone, len(zones)), extension.ShareOf(pool.MaxUnavailable, zone, len(zones))
	if zero(surge) && zero(unavailable) { // otherwise no machine could be replaced
		if zero(pool.MaxSurge) {
			unavailable = intstr.FromInt32(1)
		} else {
			surge = intstr.FromInt32(1)
		}
	}
	meta := metav1.ObjectMeta{Namespace: worker.Namespace, Name: className, Labels: map[string]string{constants.GardenerPurpose: purposeMachineClass}}
	selector := map[string]string{machineNameLabel: name}
	return machines{
		secret: &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque},
		class: &machinev1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: className},
			SecretRef:  &corev1.SecretReference{Namespace: worker.Namespace, Name: className},
			NodeTemplate: &machinev1alpha1.NodeTemplate{
				InstanceType: pool.MachineType, Region: worker.Spec.Region, Zone: zones[zone], Architecture: new(ptr.Deref(pool.Architecture, defaultArchitecture)),
			},
		},
		deployment: &machinev1alpha1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: worker.Namespace, Name: name, Labels: map[string]string{constants.WorkerPool: pool.Name},
			},
			Spec: machinev1alpha1.MachineDeploymentSpec{
				Replicas: replicas, MinReadySeconds: 1,
				AutoPreserveFailedMachineMax: preserved(pool, zone, len(zones)),
				Selector:                     &metav1.LabelSelector{MatchLabels: selector},
				Strategy:                     extension.UpdateStrategy(pool, surge, unavailable),
				Template: machinev1alpha1.MachineTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: selector},
					Spec: machinev1alpha1.MachineSpec{
						MachineConfiguration: settings(pool.MachineControllerManager),
						Class:                machinev1alpha1.ClassSpec{Kind: machinev1alpha1.MachineClassKind, Name: className},
						NodeTemplate: machinev1alpha1.NodeTemplateSpec{
							ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pool.Annotations}, Spec: corev1.NodeSpec{Taints: pool.Taints},
						},
					},
				},
			},
		},
		published: extensionsv1alpha1.MachineDeployment{
			Name: name, Minimum: minimum, Maximum: maximum, Priority: pool.Priority, AutoPreserveFailedMachineMax: preserved(pool, zone, len(zones)),
		},
	}
}

func zero(value intstr.IntOrString) bool {
	return value.Type == intstr.Int && value.IntVal == 0 || value.Type == intstr.String && strings.TrimSuffix(value.StrVal, "%") == "0"
}

func preserved(pool *extensionsv1alpha1.WorkerPool, zone, zones int) *int32 {
	if pool.MachineControllerManager == nil || pool.MachineControllerManager.AutoPreserveFailedMachineMax == nil {
		return nil
	}
	return new(extension.Share(*pool.MachineControllerManager.AutoPreserveFailedMachineMax, zone, zones))
}

// settings are the timeouts of the machines of a pool.
func settings(from *corev1beta1.MachineControllerManagerSettings) machinev1alpha1.MachineConfiguration {
	if from == nil {
		return machinev1alpha1.MachineConfiguration{}
	}
	out := machinev1alpha1.MachineConfiguration{
		DrainTimeout: from.MachineDrainTimeout, HealthTimeout: from.MachineHealthTimeout, CreationTimeout: from.MachineCreationTimeout,
		InPlaceUpdateTimeout: from.InPlaceUpdateTimeout, DisableHealthTimeout: from.DisableHealthTimeout,
		MachinePreserveTimeout: from.MachinePreserveTimeout, MaxEvictRetries: from.MaxEvictRetries,
	}
	if len(from.NodeConditions) > 0 {
		out.NodeConditions = new(strings.Join(from.NodeConditions, ","))
	}
	return out
}

// hibernated reports whether hibernation of the shoot is enabled.
func hibernated(cluster *extension.Cluster) bool {
	hibernation := cluster.Shoot.Spec.Hibernation
	return hibernation != nil && ptr.Deref(hibernation.Enabled, false)
}

// capacityOf returns the capacity of the machines of a pool: what the delegate knows, or else what the pool or its machine type says.
func capacityOf(
	pool *extensionsv1alpha1.WorkerPool, cluster *extension.Cluster, known corev1.ResourceList, at *field.Path,
) (corev1.ResourceList, error) {
	if len(known) > 0 {
		return known, nil
	}
	if pool.NodeTemplate != nil && len(pool.NodeTemplate.Capacity) > 0 {
		return pool.NodeTemplate.Capacity, nil
	}
	for _, machineType := range cluster.CloudProfile.Spec.MachineTypes {
		if machineType.Name == pool.MachineType {
			return corev1.ResourceList{
				corev1.ResourceCPU: machineType.CPU, corev1.ResourceMemory: machineType.Memory,
			}, nil
		}
	}
	return nil, errorcode.With(field.NotFound(at, pool.MachineType), corev1beta1.ErrorConfigurationProblem)
}
