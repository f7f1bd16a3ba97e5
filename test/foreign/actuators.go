package foreign

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// common is what the specs have in common that it reads.
type common struct {
	Spec struct {
		Region                       string
		SecretRef                    corev1.SecretReference
		SSHPublicKey                 []byte `json:"sshPublicKey"`
		InfrastructureProviderStatus map[string]any
		Pools                        []pool
	}
}

// pool is what it reads of a pool of machines.
type pool struct {
	Name, MachineType string
	MachineImage      struct{ Name, Version string }
	Minimum, Maximum  int64
	MaxSurge          any
	MaxUnavailable    any
	Zones             []string
	Labels            map[string]string
	UserDataSecretRef corev1.SecretKeySelector
	KubernetesVersion string
	Architecture      string
}

// read decodes a spec, and checks the credentials.
func read(ctx context.Context, c client.Client, object *unstructured.Unstructured) (*common, error) {
	in := &common{}
	raw, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(raw, in)
	}
	if err != nil {
		return nil, err
	}
	credentials := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: in.Spec.SecretRef.Namespace, Name: in.Spec.SecretRef.Name}, credentials); err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	if len(credentials.Data["token"]) == 0 {
		return nil, fmt.Errorf("Secret %q has no token", credentials.Name)
	}
	return in, nil
}

// infrastructure reports a network.
func infrastructure(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	if _, err := read(ctx, c, object); err != nil {
		return err
	}
	status := map[string]any{"apiVersion": "acme.provider.extensions.gardener.cloud/v1alpha1", "kind": "InfrastructureStatus", "network": "network-of-" + object.GetNamespace()}
	if err := unstructured.SetNestedMap(object.Object, status, "status", "providerStatus"); err != nil {
		return err
	}
	return unstructured.SetNestedStringSlice(object.Object, []string{"203.0.113.7/32"}, "status", "egressCIDRs")
}

// controlPlane deploys the configuration of the cloud provider and the cloud-controller-manager, and what both need in the shoot.
func controlPlane(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	in, err := read(ctx, c, object)
	if err != nil {
		return err
	}
	cluster := kind("Cluster")
	if err := c.Get(ctx, client.ObjectKey{Name: object.GetNamespace()}, cluster); err != nil {
		return fmt.Errorf("read Cluster: %w", err)
	}
	kubeconfig := cluster.GetAnnotations()["generic-token-kubeconfig.secret.gardener.cloud/name"]
	technicalID, _, _ := unstructured.NestedString(cluster.Object, "spec", "shoot", "status", "technicalID")
	pods, _, _ := unstructured.NestedString(cluster.Object, "spec", "shoot", "spec", "networking", "pods")
	seed, _, _ := unstructured.NestedString(cluster.Object, "spec", "seed", "metadata", "name")
	if network := in.Spec.InfrastructureProviderStatus["network"]; kubeconfig == "" || technicalID == "" || pods == "" || seed == "" || network == nil {
		return fmt.Errorf("kubeconfig %q, technical ID %q, pod network %q, seed %q, network %v: one of them is missing", kubeconfig, technicalID, pods, seed, network)
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: name}
	}
	config := &corev1.ConfigMap{
		ObjectMeta: meta("cloud-provider-config"),
		Data:       map[string]string{"cloudprovider.conf": fmt.Sprintf("region: %s\nnetwork: %v\n", in.Spec.Region, in.Spec.InfrastructureProviderStatus["network"])},
	}
	access := &corev1.Secret{ObjectMeta: meta("shoot-access-cloud-controller-manager"), Type: corev1.SecretTypeOpaque}
	access.Labels = map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}
	access.Annotations = map[string]string{
		"serviceaccount.resources.gardener.cloud/name": "cloud-controller-manager", "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
	}
	for _, o := range []client.Object{config, access} {
		if err := apply(ctx, c, o); err != nil {
			return err
		}
	}
	values := map[string]any{"genericKubeconfig": kubeconfig, "access": access.Name, "clusterName": technicalID, "podNetwork": pods}
	for name, class := range map[string]string{"seed": "seed", "shoot": "", "storageclasses": ""} {
		values["part"] = name
		content, err := render("controlplane", object.GetNamespace(), values)
		if err == nil {
			err = manage(ctx, c, meta("extension-controlplane-"+name), class, content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// manage writes a ManagedResource, whose class is empty for the shoot.
func manage(ctx context.Context, c client.Client, meta metav1.ObjectMeta, class, content string) error {
	secret := &corev1.Secret{ObjectMeta: *meta.DeepCopy(), Type: corev1.SecretTypeOpaque, StringData: map[string]string{"objects.yaml": content}}
	if err := apply(ctx, c, secret); err != nil {
		return err
	}
	spec := map[string]any{"secretRefs": []any{map[string]any{"name": meta.Name}}}
	if class != "" {
		spec["class"] = class
	}
	return apply(ctx, c, custom("resources.gardener.cloud/v1alpha1", "ManagedResource", meta.Namespace, meta.Name, map[string]any{"spec": spec}))
}

// worker creates classes and deployments of machines, and reports them.
func worker(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	in, err := read(ctx, c, object)
	if err != nil {
		return err
	}
	namespace, deployments, images := object.GetNamespace(), []any{}, []any{}
	for _, pool := range in.Spec.Pools {
		userData := &corev1.Secret{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pool.UserDataSecretRef.Name}, userData); err != nil {
			return fmt.Errorf("read user data: %w", err)
		}
		for i, zone := range pool.Zones {
			name := fmt.Sprintf("%s-%s-z%d", namespace, pool.Name, i+1)
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"gardener.cloud/purpose": "machineclass"}},
				Data:       map[string][]byte{"userData": userData.Data[pool.UserDataSecretRef.Key]}, Type: corev1.SecretTypeOpaque,
			}
			class := custom("machine.sapcloud.io/v1alpha1", "MachineClass", namespace, name, map[string]any{
				"provider": Type, "secretRef": map[string]any{"namespace": namespace, "name": name},
				"credentialsSecretRef": map[string]any{"namespace": in.Spec.SecretRef.Namespace, "name": in.Spec.SecretRef.Name},
				"providerSpec": map[string]any{
					"zone": zone, "type": pool.MachineType, "image": pool.MachineImage.Name + ":" + pool.MachineImage.Version, "architecture": pool.Architecture,
					"network": in.Spec.InfrastructureProviderStatus["network"], "sshKey": string(in.Spec.SSHPublicKey),
				},
			})
			labels := map[string]any{"name": name}
			deployment := custom("machine.sapcloud.io/v1alpha1", "MachineDeployment", namespace, name, map[string]any{"spec": map[string]any{
				"replicas": pool.Minimum, "minReadySeconds": int64(500), "selector": map[string]any{"matchLabels": labels},
				"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": pool.MaxSurge, "maxUnavailable": pool.MaxUnavailable}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"class": map[string]any{"kind": "MachineClass", "name": name}},
				},
			}})
			for _, o := range []client.Object{secret, class, deployment} {
				if err := apply(ctx, c, o); err != nil {
					return err
				}
			}
			deployments = append(deployments, map[string]any{"name": name, "minimum": pool.Minimum, "maximum": pool.Maximum})
		}
		images = append(images, map[string]any{"name": pool.MachineImage.Name, "version": pool.MachineImage.Version, "image": "acme-1"})
	}
	if err := unstructured.SetNestedSlice(object.Object, deployments, "status", "machineDeployments"); err != nil {
		return err
	}
	return unstructured.SetNestedMap(object.Object, map[string]any{
		"apiVersion": "acme.provider.extensions.gardener.cloud/v1alpha1", "kind": "WorkerStatus", "machineImages": images,
	}, "status", "providerStatus")
}

func custom(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// apply creates an object, or replaces what it has.
func apply(ctx context.Context, c client.Client, object client.Object) error {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(Name), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %q: %w", gvk.Kind, object.GetName(), err)
	}
	return nil
}
