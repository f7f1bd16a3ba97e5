package landscape

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/component/gardenercontrollermanager"
	"gardener.cloud/gardener/internal/component/gardenerscheduler"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/secrets"
)

// gardenTimeout is how long deploying the garden may take on a busy machine.
const gardenTimeout = 5 * time.Minute

// bringUpGarden deploys the garden into the runtime cluster: its kube-apiserver proxies requests for the garden API to gardener-apiserver,
// which stores its objects in the cluster's own etcd.
func (u *upRun) bringUpGarden(ctx context.Context, cluster Cluster) error {
	if err := u.step(ctx, "Pushing the gardener image", registryContainer, func(ctx context.Context, _ func(string)) (err error) {
		u.image, err = u.gardenerImage(ctx)
		return err
	}); err != nil {
		return err
	}
	return u.step(ctx, "Deploying the garden", "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := context.WithTimeoutCause(ctx, gardenTimeout, fmt.Errorf("not done after %s", gardenTimeout))
		defer cancel()
		c, err := u.Client(cluster.Name)
		if err != nil {
			return err
		}
		server, values, clients, err := u.gardenObjects(ctx, c, cluster, u.image)
		if err != nil {
			return err
		}
		if err := kube.Apply(ctx, c, fieldOwner, server...); err != nil {
			return err
		}
		apiServer := &gardenerAPIServerEncryption{c: c, values: values, detail: detail}
		state, err := apiServer.state(ctx)
		if err != nil {
			return err
		}
		if err := encryption.Reconcile(ctx, apiServer, u.dueRotation(state)); err != nil {
			return err
		}
		// The other processes would crash until this API is served.
		if err := gardenerapiserver.AwaitServed(ctx, c, func(reason error) { detail(reason.Error()) }); err != nil {
			return err
		}
		if err := kube.Apply(ctx, c, fieldOwner, clients...); err != nil {
			return err
		}
		if err := awaitGarden(ctx, c, detail); err != nil {
			return err
		}
		if err := u.deployAdmissionController(ctx, c, cluster, u.image, detail); err != nil {
			return err
		}
		provider, err := u.localProvider()
		if err != nil {
			return err
		}
		samples, err := u.samples()
		if err != nil {
			return err
		}
		return applyToGarden(ctx, c, append(provider, samples...)...)
	})
}

// gardenerImage builds the image of the binary gardener, pushes it, and returns its reference with digest.
func (u *upRun) gardenerImage(ctx context.Context) (string, error) {
	entry, err := u.images.Find("gardener", imagevector.Query{})
	if err != nil {
		return "", err
	}
	image, err := u.builds.Wrap(filepath.Join(u.Dir, "images", "gardener"), u.artifacts.products["base"], entry.Repository, u.gardener)
	if err != nil {
		return "", err
	}
	loaded, err := image.Load()
	if err != nil {
		return "", err
	}
	return image.Reference + "@" + image.Digest, u.push(ctx, image.Reference, loaded)
}

// gardenObjects are the objects of the garden: those that gardener-apiserver needs, what that is deployed with, and those that use it.
func (u *upRun) gardenObjects(
	ctx context.Context, c client.Client, cluster Cluster, image string,
) (server []client.Object, values gardenerapiserver.Values, clients []client.Object, err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}
	if err := kube.Apply(ctx, c, fieldOwner, append(priorityclass.Garden(), namespace)...); err != nil {
		return nil, values, nil, err
	}
	etcd, err := u.etcdCredentials(ctx, cluster)
	if err != nil {
		return nil, values, nil, err
	}
	manager, err := secrets.New(ctx, secrets.Values{Client: c, Namespace: namespace.Name, Identity: fieldOwner})
	if err != nil {
		return nil, values, nil, err
	}
	const ca = "ca-gardener"
	caBundle, err := manager.Generate(ctx, &secrets.CertificateAuthority{Name: ca, CommonName: "gardener"}, secrets.KeepOld())
	if err != nil {
		return nil, values, nil, err
	}
	certificate, err := manager.Generate(ctx, &secrets.Certificate{
		Name: gardenerapiserver.Name, CommonName: gardenerapiserver.Name, Usage: secrets.ServerCert,
		DNSNames: gardenerapiserver.DNSNames(namespace.Name),
	}, secrets.SignedBy(ca))
	if err != nil {
		return nil, values, nil, err
	}
	if err := manager.Cleanup(ctx); err != nil {
		return nil, values, nil, err
	}

	values = gardenerapiserver.Values{
		Namespace: namespace.Name, Image: image, Replicas: 1, ClusterIdentity: "garden-" + u.Name,
		EtcdServers: []string{fmt.Sprintf("https://%s:2379", u.network().Machine(cluster.Machines[0].Number))}, EtcdSecret: etcd.Name,
		Certificate: certificate.Name, CA: caBundle.Data[secrets.DataKeyCertificateCA],
	}
	controllerManager, err := gardenercontrollermanager.Objects(gardenercontrollermanager.Values{Namespace: namespace.Name, Image: image, Replicas: 1})
	if err != nil {
		return nil, values, nil, err
	}
	scheduler, err := gardenerscheduler.Objects(gardenerscheduler.Values{Namespace: namespace.Name, Image: image, Replicas: 1})
	if err != nil {
		return nil, values, nil, err
	}
	server = append([]client.Object{etcd}, gardenrbac.Objects()...)
	return server, values, slices.Concat(controllerManager, scheduler), nil
}

// deleteFormerRoles deletes the roles of gardenlets that a landscape of a former version has.
func deleteFormerRoles(ctx context.Context, c client.Client) error {
	var errs []error
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}} {
		if err := c.List(ctx, list); err != nil {
			return fmt.Errorf("list roles and their bindings: %w", err)
		}
		errs = append(errs, meta.EachListItem(list, func(item runtime.Object) error {
			if role, ok := item.(client.Object); ok && gardenrbac.Former(role.GetName()) {
				return client.IgnoreNotFound(c.Delete(ctx, role))
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// etcdCredentials is a Secret with kubeadm's client certificate for the cluster's etcd.
func (u *upRun) etcdCredentials(ctx context.Context, cluster Cluster) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "etcd-client"}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{},
	}
	for key, file := range map[string]string{
		secrets.DataKeyCertificateCA: "etcd/ca.crt", secrets.DataKeyCertificate: "apiserver-etcd-client.crt", secrets.DataKeyPrivateKey: "apiserver-etcd-client.key",
	} {
		content, err := u.client.Run(ctx, cluster.Machines[0].Name, nil, "cat", "/etc/kubernetes/pki/"+file)
		if err != nil {
			return nil, fmt.Errorf("read the credentials of etcd: %w", err)
		}
		secret.Data[key] = []byte(content)
	}
	return secret, nil
}

// awaitGarden returns when all processes of the garden are healthy.
func awaitGarden(ctx context.Context, c client.WithWatch, detail func(string)) error {
	return awaitDeployments(ctx, c, detail, gardenerapiserver.Name, gardenercontrollermanager.Name, gardenerscheduler.Name)
}

// awaitDeployments returns when Deployments of the garden are rolled out and healthy.
func awaitDeployments(ctx context.Context, c client.WithWatch, detail func(string), names ...string) error {
	return kube.Await(ctx, c, &appsv1.DeploymentList{}, func(deployments []*appsv1.Deployment) error {
		for _, name := range names {
			index := slices.IndexFunc(deployments, func(d *appsv1.Deployment) bool { return d.Name == name })
			if index < 0 {
				return fmt.Errorf("Deployment %q not found", name)
			}
			if err := kube.DeploymentComplete(deployments[index]); err != nil {
				return err
			}
		}
		return nil
	}, func(reason error) { detail(reason.Error()) }, client.InNamespace(constants.GardenNamespace))
}
