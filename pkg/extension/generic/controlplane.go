// Package generic has actuators that are the same in most extensions: an author renders objects, and the actuator applies, orders and deletes them.
//
// Objects are Go values, or those of a Helm chart (package helm).
package generic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
)

// Names of the ManagedResources of a ControlPlane.
const (
	ConfigurationResource  = "extension-controlplane-configuration-seed"
	ControlPlaneResource   = "extension-controlplane-seed"
	ShootCRDsResource      = "extension-controlplane-shoot-crds"
	ShootResource          = "extension-controlplane-shoot"
	StorageClassesResource = "extension-controlplane-storageclasses"
)

// kubeAPIServer is the name of the Deployment.
const kubeAPIServer = "kube-apiserver"

// ControlPlaneInput is what the objects of a ControlPlane are rendered from.
type ControlPlaneInput struct {
	// ControlPlane is the extension resource.
	ControlPlane *extensionsv1alpha1.ControlPlane
	// Cluster is that of its shoot.
	Cluster *extension.Cluster
	// Credentials are those of the infrastructure: the data of the Secret in spec.secretRef.
	Credentials map[string][]byte
	// Checksums are annotations for the pods of the control plane, so that they are replaced when the credentials or an object of Configuration change:
	// checksum/secret-<name> and checksum/configmap-<name>.
	Checksums map[string]string
	// ScaledDown says that the shoot is hibernated and its kube-apiserver is stopped, so that nothing that connects to it needs to run.
	ScaledDown bool
}

// Replicas returns the number of pods of a Deployment that connects to the kube-apiserver of the shoot.
func (in ControlPlaneInput) Replicas(awake int32) int32 {
	if in.ScaledDown {
		return 0
	}
	return awake
}

// RenderControlPlane returns objects. The same input gives the same objects.
type RenderControlPlane func(context.Context, ControlPlaneInput) ([]client.Object, error)

// ControlPlane is an extension.Actuator of ControlPlanes. What is nil is not deployed. Add it with extension.WatchManaged, as it waits for deletions.
type ControlPlane struct {
	// Client is that of the seed. It reads and writes ManagedResources and Secrets.
	Client client.Client
	// Reader reads the Deployment kube-apiserver from the API server of the seed, which needs no permission to list Deployments.
	Reader client.Reader
	// Owner is the field manager, which is the name of the extension.
	Owner string
	// Configuration is in the namespace of the control plane, and other components read it, too: the Secret with the configuration of the cloud provider.
	Configuration RenderControlPlane
	// Components run in the namespace of the control plane, such as a cloud-controller-manager and the controllers of a CSI driver.
	Components RenderControlPlane
	// ShootCRDs are CustomResourceDefinitions in the shoot, which exist before Shoot.
	ShootCRDs RenderControlPlane
	// Shoot is in the shoot: permissions of Components, and DaemonSets.
	Shoot RenderControlPlane
	// StorageClasses are in the shoot.
	StorageClasses RenderControlPlane
}

// managedPart is one ManagedResource of a ControlPlane.
type managedPart struct {
	name   string
	render RenderControlPlane
	apply  func(ctx context.Context, c client.Client, owner, namespace, name string, objects ...client.Object) error
}

// parts are the ManagedResources in the order in which they are applied. They are deleted in the opposite order.
func (a *ControlPlane) parts() []managedPart {
	return []managedPart{
		{ConfigurationResource, a.Configuration, extension.ApplySeed},
		{ControlPlaneResource, a.Components, extension.ApplySeed},
		{ShootCRDsResource, a.ShootCRDs, extension.ApplyShoot},
		{ShootResource, a.Shoot, extension.ApplyShoot},
		{StorageClassesResource, a.StorageClasses, extension.ApplyShoot},
	}
}

// Reconcile applies the ManagedResources. It does not wait for them: the gardenlet checks their health, and there are no nodes yet at first.
func (a *ControlPlane) Reconcile(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, cluster *extension.Cluster) error {
	in, err := a.input(ctx, controlPlane, cluster)
	if err != nil {
		return err
	}
	for _, part := range a.parts() {
		var objects []client.Object
		if part.render != nil {
			if objects, err = part.render(ctx, in); err != nil {
				return fmt.Errorf("render the objects of ManagedResource %q: %w", part.name, err)
			}
		}
		if len(objects) == 0 { // there may have been some before
			if err := ignoreWait(extension.DeleteManaged(ctx, a.Client, controlPlane.Namespace, part.name)); err != nil {
				return err
			}
			continue
		}
		if part.name == ConfigurationResource {
			addChecksums(in.Checksums, objects)
		}
		if err := part.apply(ctx, a.Client, a.Owner, controlPlane.Namespace, part.name, objects...); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes what is in the shoot, then the components that may be needed for it, such as those that delete volumes.
func (a *ControlPlane) Delete(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) error {
	return a.remove(ctx, controlPlane.Namespace, extension.DeleteManaged)
}

// ForceDelete keeps the objects in the shoot, which may not respond any more.
func (a *ControlPlane) ForceDelete(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) error {
	return a.remove(ctx, controlPlane.Namespace, extension.ReleaseManaged)
}

// Migrate keeps the objects in the shoot, and deletes those in the seed.
func (a *ControlPlane) Migrate(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, _ *extension.Cluster) error {
	return a.remove(ctx, controlPlane.Namespace, extension.ReleaseManaged)
}

// remove removes those in the shoot by a function, and deletes those in the seed when they are gone.
func (a *ControlPlane) remove(ctx context.Context, namespace string, fromShoot func(context.Context, client.Client, string, string) error) error {
	if err := errors.Join(
		fromShoot(ctx, a.Client, namespace, StorageClassesResource), fromShoot(ctx, a.Client, namespace, ShootResource),
	); err != nil {
		return err
	}
	if err := fromShoot(ctx, a.Client, namespace, ShootCRDsResource); err != nil {
		return err
	}
	if err := extension.DeleteManaged(ctx, a.Client, namespace, ControlPlaneResource); err != nil {
		return err
	}
	return extension.DeleteManaged(ctx, a.Client, namespace, ConfigurationResource)
}

// input reads what objects are rendered from.
func (a *ControlPlane) input(ctx context.Context, controlPlane *extensionsv1alpha1.ControlPlane, cluster *extension.Cluster) (ControlPlaneInput, error) {
	in := ControlPlaneInput{ControlPlane: controlPlane, Cluster: cluster, Checksums: map[string]string{}}
	secret := &corev1.Secret{}
	if ref := controlPlane.Spec.SecretRef; ref.Name != "" {
		if err := a.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
			return in, fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		in.Credentials = secret.Data
		in.Checksums["checksum/secret-"+ref.Name] = checksum(secret.Data)
	}
	var err error
	if cluster.Hibernated() {
		in.ScaledDown, err = stopped(ctx, a.Reader, controlPlane.Namespace)
	}
	return in, err
}

// stopped says whether the kube-apiserver of a control plane has no pods.
func stopped(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	deployment := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kubeAPIServer}, deployment)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Deployment %q: %w", kubeAPIServer, err)
	}
	return ptr.Deref(deployment.Spec.Replicas, 1) == 0, nil
}

// addChecksums adds those of the data of Secrets and ConfigMaps.
func addChecksums(checksums map[string]string, objects []client.Object) {
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Secret:
			checksums["checksum/secret-"+o.Name] = checksum([]any{o.Data, o.StringData})
		case *corev1.ConfigMap:
			checksums["checksum/configmap-"+o.Name] = checksum([]any{o.Data, o.BinaryData})
		case *unstructured.Unstructured: // of a chart
			if kind := o.GetKind(); kind == "Secret" || kind == "ConfigMap" {
				checksums["checksum/"+strings.ToLower(kind)+"-"+o.GetName()] = checksum([]any{o.Object["data"], o.Object["stringData"], o.Object["binaryData"]})
			}
		}
	}
}

// checksum returns one of data.
func checksum(data any) string {
	encoded, _ := json.Marshal(data) // maps of strings and bytes
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// ignoreWait returns an error, unless it only says that a deletion is not finished.
func ignoreWait(err error) error {
	var wait *extension.Wait
	if errors.As(err, &wait) {
		return nil
	}
	return err
}
