package clusterautoscaler

import (
	"io"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	process "gardener.cloud/gardener/internal/clusterautoscaler"
	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
	"gardener.cloud/gardener/test/everyfield"
	"gardener.cloud/gardener/test/golden"
)

func values(change func(*Values)) Values {
	v := Values{
		Namespace: "shoot--dev--crazy", Image: "registry.example/cluster-autoscaler:v1", Replicas: 1, KubernetesVersion: "1.36.1",
		GenericKubeconfig: "generic-token-kubeconfig-1234",
		MachineDeployments: []extensionsv1alpha1.MachineDeployment{
			{Name: "shoot--dev--crazy-a-z1", Minimum: 1, Maximum: 3}, {Name: "shoot--dev--crazy-a-z2", Minimum: 0, Maximum: 2}, {Name: "shoot--dev--crazy-b"},
		},
	}
	if change != nil {
		change(&v)
	}
	return v
}

func TestObjects(t *testing.T) {
	for name, change := range map[string]func(*Values){
		"default": nil,
		"configured": func(v *Values) {
			v.Config = &corev1beta1.ClusterAutoscaler{
				Expander: new(corev1beta1.ExpanderMostPods), IgnoreTaints: []string{"old"}, StartupTaints: []string{"starting"}, StatusTaints: []string{"sick"},
				Autoscaling: &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200M")}},
			}
			v.MaxNodesTotal, v.KubernetesVersion = 100, "1.34.2"
			v.MachineDeployments[0].Priority = new(int32(10))
			v.MachineDeployments[1].AutoPreserveFailedMachineMax = new(int32(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(values(change))
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name+".yaml", objects)
			if objects, err = TargetObjects(values(change)); err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name+"-target.yaml", objects)
		})
	}
}

// parse returns what the process reads from its Deployment.
func parse(t *testing.T, v Values) (process.Options, error) {
	t.Helper()
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	index := slices.IndexFunc(objects, func(o client.Object) bool { _, ok := o.(*appsv1.Deployment); return ok })
	container := objects[index].(*appsv1.Deployment).Spec.Template.Spec.Containers[0] //nolint:forcetypeassert // just found
	return process.Parse(container.Command[1:], func(key string) string {
		for _, env := range container.Env {
			if env.Name == key {
				return env.Value
			}
		}
		return ""
	}, io.Discard)
}

// The process starts with zeros, which are valid in a Shoot.
func TestProcessStartsWithZeros(t *testing.T) {
	zero, none := &metav1.Duration{}, new(int32(0))
	if _, err := parse(t, values(func(v *Values) {
		v.Config = &corev1beta1.ClusterAutoscaler{
			ScaleDownDelayAfterAdd: zero, ScaleDownDelayAfterDelete: zero, ScaleDownDelayAfterFailure: zero, ScaleDownUnneededTime: zero,
			ScaleDownUtilizationThreshold: new(0.0), ScanInterval: zero, MaxNodeProvisionTime: zero, NewPodScaleUpDelay: zero, MaxBinpackingTime: zero,
			InitialNodeGroupBackoffDuration: zero, MaxNodeGroupBackoffDuration: zero, NodeGroupBackoffResetTimeout: zero,
			MaxGracefulTerminationSeconds: none, MaxScaleDownParallelism: none, MaxDrainParallelism: none, Verbosity: none,
		}
	})); err != nil {
		t.Error(err)
	}
}

// The process knows all flags that it is started with, and reads the groups and priorities.
func TestProcessReadsWhatIsRendered(t *testing.T) {
	v := values(func(v *Values) { v.MachineDeployments[1].Priority = new(int32(-1)) })
	o, err := parse(t, v)
	if err != nil {
		t.Fatal(err)
	}
	if want := (process.NodesOption{Min: 0, Max: 2, Namespace: v.Namespace, Name: "shoot--dev--crazy-a-z2"}); len(o.Nodes) != 2 || o.Nodes[1] != want {
		t.Errorf("groups are %v", o.Nodes)
	}
	if got := strings.Join(o.Expanders, ","); got != "priority,least-waste" {
		t.Errorf("expanders are %q", got)
	}
	target, err := TargetObjects(v)
	if err != nil {
		t.Fatal(err)
	}
	config := target[len(target)-1].(*corev1.ConfigMap) //nolint:forcetypeassert // it is the last one
	priorities, err := plan.ParsePriorities(config.Data[prioritiesKey])
	if err != nil {
		t.Fatal(err)
	}
	if len(priorities[0]) != 2 || len(priorities[-1]) != 1 || !priorities[-1][0].MatchString("shoot--dev--crazy-a-z2") {
		t.Errorf("priorities are %v", priorities)
	}
}

func TestExpander(t *testing.T) {
	with := []extensionsv1alpha1.MachineDeployment{{Name: "a"}, {Name: "b", Priority: new(int32(0))}}
	for name, tc := range map[string]struct {
		mode        corev1beta1.ExpanderMode
		deployments []extensionsv1alpha1.MachineDeployment
		want        string
	}{
		"no priorities":                     {"least-waste", with[:1], "least-waste"},
		"priorities":                        {"least-waste,random", with, "priority,least-waste,random"},
		"priorities, and the user's order":  {"most-pods,priority", with, "most-pods,priority"},
		"the user has the ConfigMap":        {"priority", with[:1], "priority"},
		"a priority of 0 is a priority too": {"random", with[1:], "priority,random"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expander(tc.mode, tc.deployments); got != tc.want {
				t.Errorf("expander() is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEveryFieldReachesTheAutoscaler(t *testing.T) {
	everyfield.Run(t, everyfield.Suite[corev1beta1.ClusterAutoscaler]{
		Render: func(t *testing.T, config *corev1beta1.ClusterAutoscaler) string {
			objects, err := Objects(Values{Config: config})
			return everyfield.YAML(t, objects, err)
		},
	})
}
