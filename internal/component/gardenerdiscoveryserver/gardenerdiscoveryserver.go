// Package gardenerdiscoveryserver deploys gardener-discovery-server, which serves what third parties need to trust shoots and WorkloadIdentities.
package gardenerdiscoveryserver

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Name is the name of the Deployment, the Service and the TLSRoute.
	Name = "gardener-discovery-server"
	// ManagedResourceNameRuntime and ManagedResourceNameVirtual are the names of ManagedResources with Objects and TargetObjects.
	ManagedResourceNameRuntime, ManagedResourceNameVirtual = Name + "-runtime", Name + "-virtual"
	// WorkloadIdentitySecretName is the name of the Secret with the documents of the issuer of WorkloadIdentity tokens.
	WorkloadIdentitySecretName = Name + "-garden-workload-identity"
	// IssuerSecretName is the name of the Secret in the garden that names the host of managed issuers.
	IssuerSecretName = "shoot-service-account-issuer"

	// role is the name of the ClusterRole and of the Role in the garden.
	role = "gardener.cloud:system:discovery-server"

	httpsPort   = 10443
	healthPort  = 8081
	metricsPort = 8080

	filesDir            = "/var/run/secrets/gardener.cloud/" + Name
	certificateDir      = filesDir + "/tls"
	workloadIdentityDir = filesDir + "/garden-workload-identity"

	openIDConfigKey, keySetKey = "openid-configuration.json", "jwks.json"
)

// Values are what the server is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. All of them serve.
	Replicas int32
	// Host is the host of all issuers, see Host.
	Host string
	// Certificate is the Secret with the serving certificate for the host, tls.crt and tls.key, see Certificate.
	Certificate string
	// WorkloadIdentity is the Secret with the documents of the issuer of WorkloadIdentity tokens, see WorkloadIdentitySecret. Nil means that there is none.
	WorkloadIdentity *corev1.Secret
	// GenericKubeconfig is the Secret with the generic token kubeconfig of the virtual garden. Empty means that the garden is the cluster that it
	// runs in.
	GenericKubeconfig string
	// Gateway is the Gateway of its TLSRoute. The default is that of seeds.
	Gateway client.ObjectKey
	// LogLevel is info, debug or error. Empty means the default of the process.
	LogLevel string
	// Autoscaled renders a VerticalPodAutoscaler.
	Autoscaled bool
}

// account is the ServiceAccount that the server is in the garden.
func (v Values) account() rbacv1.Subject {
	if v.GenericKubeconfig == "" {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: v.Namespace, Name: Name}
	}
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Name}
}

func (v Values) process() gardenerprocess.Values {
	process := gardenerprocess.Values{
		Name: Name, Role: "discovery-server", Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameGardenSystem200,
		Args: []string{
			"--hostname=" + v.Host,
			fmt.Sprintf("--secure-port=%d", httpsPort), fmt.Sprintf("--health-port=%d", healthPort), fmt.Sprintf("--metrics-port=%d", metricsPort),
			"--tls-cert-file=" + certificateDir + "/" + secrets.DataKeyCertificate,
			"--tls-private-key-file=" + certificateDir + "/" + secrets.DataKeyPrivateKey,
		},
		Ports: []corev1.ContainerPort{
			{Name: "https", ContainerPort: httpsPort, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
		},
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources: workload.Requests("10m", "40Mi"),
		Files:     []gardenerprocess.File{{Volume: workload.SecretVolume("tls", v.Certificate), Path: certificateDir}},
		PodLabels: map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		},
	}
	if v.WorkloadIdentity != nil {
		process.Args = append(process.Args,
			"--workload-identity-openid-configuration-file="+workloadIdentityDir+"/"+openIDConfigKey,
			"--workload-identity-jwks-file="+workloadIdentityDir+"/"+keySetKey)
		process.Files = append(process.Files, gardenerprocess.File{
			Volume: workload.SecretVolume("garden-workload-identity", v.WorkloadIdentity.Name), Path: workloadIdentityDir,
		})
		// The process reads changed files, but a new key must be published before tokens that it signs get to third parties. So the pods roll, and
		// the Deployment says when they have it.
		process.PodAnnotations = map[string]string{"checksum/workload-identity": workload.Checksum(
			string(v.WorkloadIdentity.Data[openIDConfigKey]), string(v.WorkloadIdentity.Data[keySetKey]))}
	}
	if v.GenericKubeconfig != "" {
		process.Args = append(process.Args, "--kubeconfig="+shootaccess.PathKubeconfig)
		process.Files = append(process.Files, gardenerprocess.File{Volume: shootaccess.Volume(v.GenericKubeconfig, Name), Path: shootaccess.MountPath})
		delete(process.PodLabels, constants.NetworkPolicyToRuntimeAPIServer)
		process.PodLabels[kubeapiserver.PolicyLabel(instance.VirtualGarden)] = constants.NetworkPolicyAllowed
	}
	if v.LogLevel != "" {
		process.Args = append(process.Args, "--log-level="+v.LogLevel)
	}
	return process
}

// Objects renders the server for the cluster that it runs in. TargetObjects renders what it needs in the garden.
func Objects(v Values) ([]client.Object, error) {
	process := v.process()
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *appsv1.Deployment:
			object.Labels = maps.Clone(object.Labels) // the selector has the same map
			workload.HighAvailability(object, resourcesv1alpha1.HighAvailabilityConfigTypeServer, v.Replicas)
			object.Spec.Template.Spec.EnableServiceLinks = new(false)
			if v.GenericKubeconfig != "" {
				object.Spec.Template.Spec.AutomountServiceAccountToken = new(false) // it has none to use
			}
			if err := references.Inject(object, nil); err != nil {
				return nil, err
			}
		case *policyv1.PodDisruptionBudget:
			object.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		}
	}
	if v.Autoscaled {
		objects = append(objects, workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
	}
	if v.GenericKubeconfig != "" {
		objects = append([]client.Object{shootaccess.Secret(v.Namespace, Name)}, objects...)
	}
	if v.WorkloadIdentity != nil { // before the pods that mount it
		objects = append([]client.Object{v.WorkloadIdentity}, objects...)
	}
	service := process.Workload().Service("https", 443)
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(httpsPort) // a number, as annotations for network policies contain it
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
		Name: "metrics", Port: metricsPort, TargetPort: intstr.FromInt32(metricsPort), Protocol: corev1.ProtocolTCP,
	})
	service.Annotations = workload.Merge(workload.FromPods("all-garden-scrape-targets", metricsPort), map[string]string{
		// The gateway passes connections of strangers through, so there is nothing to restrict.
		resourcesv1alpha1.NetworkingFromWorldToPorts: fmt.Sprintf(`[{"protocol":"TCP","port":%d}]`, httpsPort),
	})
	return append(append(objects, service), exposure.Objects(exposure.Values{
		Namespace: v.Namespace, Hosts: []string{v.Host}, Service: Name, Port: 443, Gateway: v.Gateway,
	})...), nil
}

// TargetObjects renders what the server needs in the garden: its permissions, and the Secret by which Gardener knows that there are managed issuers,
// and their host.
func TargetObjects(v Values) []client.Object {
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: role, Labels: v.process().Workload().Labels}
	}
	const read = "get list watch"
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	}
	subjects := []rbacv1.Subject{v.account()}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta(""), Rules: []rbacv1.PolicyRule{
			workload.Rule("core.gardener.cloud", "projects shoots", read),
			// CAs of shoots are in the namespaces of projects. It reads only those with the label.
			workload.Rule("", "configmaps", read),
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(""), RoleRef: ref("ClusterRole"), Subjects: subjects},
		&rbacv1.Role{ObjectMeta: meta(constants.GardenerShootIssuerNamespace), Rules: []rbacv1.PolicyRule{workload.Rule("", "secrets", read)}},
		&rbacv1.RoleBinding{ObjectMeta: meta(constants.GardenerShootIssuerNamespace), RoleRef: ref("Role"), Subjects: subjects},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: IssuerSecretName, Labels: map[string]string{
				constants.GardenRole: constants.GardenRoleShootServiceAccountIssuer,
			}},
			Type: corev1.SecretTypeOpaque, Data: map[string][]byte{issuer.HostnameKey: []byte(v.Host)},
		},
	}
}
