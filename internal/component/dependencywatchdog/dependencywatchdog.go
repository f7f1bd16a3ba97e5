// Package dependencywatchdog deploys the dependency-watchdog into a seed: a prober, which scales down the controllers of a shoot while its nodes cannot reach
// the kube-apiserver, and a weeder, which restarts pods of control planes that wait in CrashLoopBackOff for what is available again. Source: fleet.md 10.
package dependencywatchdog

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// Name is the name of the process.
	Name = "dependency-watchdog"
	// ProberRole and WeederRole are its subcommands.
	ProberRole, WeederRole = "prober", "weeder"
	// Prober and Weeder are the names of the Deployments.
	Prober, Weeder = Name + "-" + ProberRole, Name + "-" + WeederRole
	// ProberLease and WeederLease are the Leases for the leader election.
	ProberLease, WeederLease = "dwd-prober-leader-election", "dwd-weeder-leader-election"

	// Account is the user of the prober in a shoot, and Access the Secret with its kubeconfig.
	Account = "dependency-watchdog-probe"
	Access  = "shoot-access-" + Account
	// ManagedResourceName is the name of the ManagedResource with TargetObjects.
	ManagedResourceName = "shoot-core-dependency-watchdog"
	// AnnotationReplicas on a Deployment is how many pods it has again when it is scaled up, and AnnotationIgnore with a true value excludes it, see Ignored.
	AnnotationReplicas = "dependency-watchdog.gardener.cloud/replicas"
	AnnotationIgnore   = "dependency-watchdog.gardener.cloud/ignore-scaling"

	configDir               = "/etc/dependency-watchdog/config"
	metricsPort, healthPort = 9643, 9644
	rolePrefix              = "gardener.cloud:"
	roleProbe               = "gardener.cloud:target:" + Name
	leaseNamespace          = "kube-node-lease"
)

// Ignored reports whether a Deployment is excluded from scaling. As in the original, all of Go's spellings of a true value count, such as "1" or "True".
func Ignored(deployment *appsv1.Deployment) bool {
	ignored, err := strconv.ParseBool(deployment.Annotations[AnnotationIgnore])
	return err == nil && ignored
}

// Scaled are the names of the Deployments that the prober scales.
func Scaled() []string {
	return []string{"kube-controller-manager", "machine-controller-manager", "cluster-autoscaler"}
}

// ProberEnabled says whether the prober is enabled in a seed, whose defaults have to be set.
func ProberEnabled(seed *corev1beta1.Seed) bool {
	s := seed.Spec.Settings
	return s != nil && s.DependencyWatchdog != nil && s.DependencyWatchdog.Prober != nil && s.DependencyWatchdog.Prober.Enabled
}

// WeederEnabled is for the weeder what ProberEnabled is for the prober.
func WeederEnabled(seed *corev1beta1.Seed) bool {
	s := seed.Spec.Settings
	return s != nil && s.DependencyWatchdog != nil && s.DependencyWatchdog.Weeder != nil && s.DependencyWatchdog.Weeder.Enabled
}

// Values are what both are deployed with.
type Values struct {
	// Namespace is where they run.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods of each. One of them leads.
	Replicas int32
}

// ClusterRoles are the names of the ClusterRoles.
func ClusterRoles() []string { return []string{rolePrefix + Prober, rolePrefix + Weeder} }

// ProberObjects renders the prober.
func ProberObjects(v Values) ([]client.Object, error) {
	seconds := func(n time.Duration) metav1.Duration { return metav1.Duration{Duration: n * time.Second} }
	dependent := func(name string, optional bool, up, down Scaling) DependentResource {
		return DependentResource{
			Ref: &autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, Optional: optional, ScaleUp: &up, ScaleDown: &down,
		}
	}
	names := Scaled()
	config := ProberConfig{
		KubeConfigSecretName: Access, ProbeInterval: seconds(30), InitialDelay: seconds(30), ProbeTimeout: seconds(30), BackoffJitterFactor: new(0.2),
		NodeLeaseFailureFraction: new(0.6), KCMNodeMonitorGraceDuration: seconds(40),
		DependentResourceInfos: []DependentResource{
			dependent(names[0], false, Scaling{}, Scaling{Level: 1}),
			dependent(names[1], false, Scaling{Level: 1, InitialDelay: seconds(30)}, Scaling{}),
			dependent(names[2], true, Scaling{Level: 2}, Scaling{}),
		},
	}
	return v.objects(ProberRole, config, []string{"--kube-api-qps=20", "--kube-api-burst=100", "--concurrent-reconciles=20"},
		map[string]string{workload.AllShootsPolicyLabel(kubeapiserver.Name, 443): constants.NetworkPolicyAllowed},
		workload.Rule("extensions.gardener.cloud", "clusters", "get list watch"),
		workload.Rule("", "secrets", "get"), // with kubeconfigs
		workload.Rule("machine.sapcloud.io", "machines", "list"),
		workload.Rule("apps", "deployments", "get patch"),
	)
}

// WeederObjects renders the weeder.
func WeederObjects(v Values) ([]client.Object, error) {
	controlPlane := map[string]string{constants.GardenRole: constants.GardenRoleControlPlane}
	config := WeederConfig{
		WatchDuration: metav1.Duration{Duration: 5 * time.Minute},
		ServicesAndDependantSelectors: map[string]DependantSelectors{
			"etcd-main-client": {PodSelectors: []*metav1.LabelSelector{{MatchLabels: workload.Merge(controlPlane, map[string]string{constants.Role: "apiserver"})}}},
			kubeapiserver.Name: {PodSelectors: []*metav1.LabelSelector{{MatchLabels: controlPlane, MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: constants.Role, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"main", "apiserver"}},
			}}}},
		},
	}
	return v.objects(WeederRole, config, nil, nil,
		workload.Rule("discovery.k8s.io", "endpointslices", "list watch"),
		workload.Rule("", "pods", "delete list watch"),
	)
}

func (v Values) objects(role string, config any, flags []string, labels map[string]string, rules ...rbacv1.PolicyRule) ([]client.Object, error) {
	raw, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of the %s: %w", role, err)
	}
	name := Name + "-" + role
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: name + "-config", Labels: map[string]string{constants.Role: name}},
		Data:       map[string]string{ConfigFile: string(raw)},
	}
	process := gardenerprocess.Values{
		Name: name, Process: Name, Labels: map[string]string{constants.Role: name}, Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameSeedSystem800,
		Args: append([]string{
			role, "--config-file=" + configDir + "/" + ConfigFile, "--enable-leader-election", "--leader-election-namespace=" + v.Namespace,
			"--metrics-bind-addr=:" + strconv.Itoa(metricsPort), "--health-bind-addr=:" + strconv.Itoa(healthPort),
		}, flags...),
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}},
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources: workload.Requests("10m", "40Mi"), Files: []gardenerprocess.File{{Volume: workload.ConfigMapVolume("config", configMap.Name), Path: configDir}},
		PodLabels: workload.Merge(map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		}, labels),
		PodAnnotations: map[string]string{"checksum/configuration": workload.Checksum(string(raw))},
	}
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	w := process.Workload()
	objects = append(objects, configMap)
	objects = append(objects, w.LeaderElection(v.Namespace)...)
	rules = append(rules, workload.Rule("", "events", "create patch"))
	return append(objects, w.ClusterRole(rolePrefix+name, rules...)...), nil
}

// TargetObjects renders the permissions of the prober in a shoot.
func TargetObjects() []client.Object {
	w := workload.Workload{Name: Account, Namespace: metav1.NamespaceSystem, Labels: systemcomponent.Labels()}
	leases := w.Role(leaseNamespace, roleProbe, workload.Rule("coordination.k8s.io", "leases", "get list"))
	return append(leases, w.ClusterRole(roleProbe, workload.Rule("", "nodes", "get list"))...)
}
