package landscape

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/component/gardenercontrollermanager"
	"gardener.cloud/gardener/internal/component/gardenerscheduler"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/secrets"
)

// gardenTimeout is the time that the garden may take on a busy machine.
const gardenTimeout = 5 * time.Minute

// bringUpGarden makes the runtime cluster serve the garden API: its kube-apiserver hands requests on to gardener-apiserver,
// which stores its objects in the cluster's own etcd.
func (u *upRun) bringUpGarden(ctx context.Context, executable string) error {
	cluster, err := u.Cluster(RuntimeCluster)
	if err != nil {
		return err
	}
	var image string
	if err := u.step(ctx, "Push the image of our processes", registryContainer, func(ctx context.Context, _ func(string)) error {
		image, err = u.gardenerImage(ctx, executable)
		return err
	}); err != nil {
		return err
	}
	return u.step(ctx, "Install the garden", "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := context.WithTimeoutCause(ctx, gardenTimeout, fmt.Errorf("not done after %s", gardenTimeout))
		defer cancel()
		c, err := u.Client(cluster.Name)
		if err != nil {
			return err
		}
		objects, err := u.gardenObjects(ctx, c, cluster, image)
		if err != nil {
			return err
		}
		if err := kube.Apply(ctx, c, fieldOwner, objects...); err != nil {
			return err
		}
		return awaitGarden(ctx, c, detail)
	})
}

// gardenerImage makes the image of the binary with all our processes, pushes it, and returns its reference with digest.
func (u *upRun) gardenerImage(ctx context.Context, executable string) (string, error) {
	entry, err := u.images.Find("gardener", imagevector.Query{})
	if err != nil {
		return "", err
	}
	image, err := u.builds.Wrap(filepath.Join(u.Dir, "images", "gardener"), u.artifacts.products["base"], entry.Repository, executable)
	if err != nil {
		return "", err
	}
	loaded, err := image.Load()
	if err != nil {
		return "", err
	}
	return image.Reference + "@" + image.Digest, u.push(ctx, image.Reference, loaded)
}

// gardenObjects are the objects of the garden, in the order in which they are best applied.
func (u *upRun) gardenObjects(ctx context.Context, c client.Client, cluster Cluster, image string) ([]client.Object, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}
	if err := kube.Apply(ctx, c, fieldOwner, append(priorityclass.Garden(), namespace)...); err != nil {
		return nil, err
	}
	etcd, err := u.etcdCredentials(ctx, cluster)
	if err != nil {
		return nil, err
	}
	manager, err := secrets.New(ctx, secrets.Values{Client: c, Namespace: namespace.Name, Identity: fieldOwner})
	if err != nil {
		return nil, err
	}
	const ca = "ca-gardener"
	authority, err := manager.Generate(ctx, &secrets.CertificateAuthority{Name: ca, CommonName: "gardener"}, secrets.KeepOld())
	if err != nil {
		return nil, err
	}
	certificate, err := manager.Generate(ctx, &secrets.Certificate{
		Name: gardenerapiserver.Name, CommonName: gardenerapiserver.Name, Usage: secrets.ServerCert,
		DNSNames: gardenerapiserver.DNSNames(namespace.Name),
	}, secrets.SignedBy(ca))
	if err != nil {
		return nil, err
	}
	if err := manager.Cleanup(ctx); err != nil {
		return nil, err
	}

	objects := append([]client.Object{etcd}, gardenrbac.Objects(gardenrbac.Values{})...)
	for _, render := range []func() ([]client.Object, error){
		func() ([]client.Object, error) {
			return gardenerapiserver.Objects(gardenerapiserver.Values{
				Namespace: namespace.Name, Image: image, Replicas: 1, ClusterIdentity: "garden-" + u.Name,
				EtcdServers: []string{fmt.Sprintf("https://%s:2379", u.network().Machine(cluster.Machines[0].Number))}, EtcdSecret: etcd.Name,
				Certificate: certificate.Name, CA: authority.Data[secrets.DataKeyCertificateCA],
			})
		},
		func() ([]client.Object, error) {
			return gardenercontrollermanager.Objects(gardenercontrollermanager.Values{
				Namespace: namespace.Name, Image: image, Replicas: 1, Config: controllermanagerconfigv1alpha1.ControllerManagerConfiguration{},
			})
		},
		func() ([]client.Object, error) {
			return gardenerscheduler.Objects(gardenerscheduler.Values{
				Namespace: namespace.Name, Image: image, Replicas: 1, Config: schedulerconfigv1alpha1.SchedulerConfiguration{},
			})
		},
	} {
		more, err := render()
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
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

// awaitGarden returns when the kube-apiserver reaches the garden API, and all processes of the garden are healthy.
func awaitGarden(ctx context.Context, c client.WithWatch, detail func(string)) error {
	report := func(reason error) { detail(reason.Error()) }
	for _, version := range gardenerapiserver.Versions() {
		if err := kube.Await(ctx, c, &apiregistrationv1.APIServiceList{}, func(services []*apiregistrationv1.APIService) error {
			if len(services) == 0 {
				return fmt.Errorf("the garden API has no version %s", version)
			}
			return kube.APIServiceAvailable(services[0])
		}, report, client.MatchingFields{"metadata.name": version.Version + "." + version.Group}); err != nil {
			return err
		}
	}
	return kube.Await(ctx, c, &appsv1.DeploymentList{}, func(deployments []*appsv1.Deployment) error {
		for _, deployment := range deployments {
			if err := kube.DeploymentHealthy(deployment); err != nil {
				return err
			}
		}
		return nil
	}, report, client.InNamespace(constants.GardenNamespace))
}
