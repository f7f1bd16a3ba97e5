// Package foundation is the stage that everything else needs: the namespace of the control plane, the Cluster resource, credentials, and
// copies of what the owner refers to in the garden.
package foundation

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/controlplanenamespace"
	"gardener.cloud/gardener/internal/component/usercopy"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/flow"
)

// tokenTimeout is for how long the token of a WorkloadIdentity may take, which the gardenlet requests from gardener-apiserver.
const tokenTimeout = 2 * time.Minute

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Namespace is the namespace of the control plane.
	Namespace controlplanenamespace.Values
	// Cluster is the content of the Cluster resource.
	Cluster ClusterValues
	// Credentials are generated here: those of etcd when credentials-etcd is done, all when credentials is.
	Credentials *credentials.Set
	// Shoot has the references in spec.resources.
	Shoot *corev1beta1.Shoot
	// CloudProvider is the credential for the infrastructure. Nil means that it needs none.
	CloudProvider *usercredential.Credential
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	tasks := []flow.Task{
		flow.Do("namespace", "Creating the namespace of the control plane", func(ctx context.Context) error {
			return in.Run.Apply(ctx, controlplanenamespace.Object(in.Namespace))
		}),
		Cluster(in),
		flow.Do("credentials-etcd", "Generating credentials of etcd", func(ctx context.Context) error {
			if err := in.Credentials.Open(ctx); err != nil {
				return err
			}
			return in.Credentials.Etcd(ctx)
		}, "namespace"),
		flow.Do("credentials", "Generating credentials", in.Credentials.Rest, "credentials-etcd"),
		flow.Do("generic-kubeconfig", "Writing the name of the generic kubeconfig into the Cluster resource", in.announceKubeconfig, "credentials", "cluster").
			IfPresent("load-balancing"), // which is for new pods
	}
	if len(in.Shoot.Spec.Resources) > 0 {
		tasks = append(tasks, flow.Do("references", "Copying referenced resources", in.references().Copy, "namespace"))
	}
	if in.CloudProvider != nil {
		tasks = append(tasks, flow.Do("cloudprovider", "Copying the credentials of the infrastructure", in.copyCloudProvider, "namespace", "cluster")) // webhooks complete it
		if in.CloudProvider.Kind == usercredential.WorkloadIdentity {
			tasks = append(tasks, flow.Await(tokenTimeout, "cloudprovider-token", "Waiting until the WorkloadIdentity of the infrastructure has a token",
				func(ctx context.Context) error {
					return in.CloudProvider.AwaitToken(ctx, in.Run.SeedAPI, in.Run.Namespace, usercopy.CloudProvider)
				}, "cloudprovider"))
		}
	}
	return tasks
}

// Cluster returns the task that writes the Cluster resource. Until it has, extensions may ignore their resources, as they do for a shoot
// that has failed.
func Cluster(in Inputs) flow.Task {
	return flow.Do("cluster", "Writing the Cluster resource", func(ctx context.Context) error {
		return WriteCluster(ctx, in.Run.SeedAPI, in.Cluster)
	}).IfPresent("references") // the Shoot in there refers to the copies
}

// Cleanup returns the task that deletes credentials and copies which were used until the last operation.
func Cleanup(in Inputs, after ...string) flow.Task {
	return flow.Do("cleanup-credentials", "Deleting unused credentials and copies of referenced resources", func(ctx context.Context) error {
		return errors.Join(in.Credentials.Cleanup(ctx), in.references().DeleteStale(ctx)) // they do not depend on each other
	}, after...)
}

// copyCloudProvider copies the credentials by which extensions reach the infrastructure.
func (in Inputs) copyCloudProvider(ctx context.Context) error {
	return in.CloudProvider.Write(ctx, in.Run, usercopy.CloudProvider, map[string]string{constants.GardenerPurpose: usercopy.CloudProvider})
}

// announceKubeconfig writes the name of the kubeconfig that pods of the control plane share to where extensions read it.
func (in Inputs) announceKubeconfig(ctx context.Context) error {
	set, err := in.Credentials.All()
	if err != nil {
		return err
	}
	cluster := &extensionsv1alpha1.Cluster{}
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKey{Name: in.Run.Namespace}, cluster); err != nil {
		return fmt.Errorf("read Cluster %q: %w", in.Run.Namespace, err)
	}
	return kube.PatchMetadata(ctx, in.Run.SeedAPI, cluster, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, extensionsv1alpha1.AnnotationGenericKubeconfigSecretName, set.Name(constants.SecretNameGenericTokenKubeconfig))
	})
}
