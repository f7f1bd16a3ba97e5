// Package gitops tests what tools that apply manifests from Git rely on: the trees in example/gitops, the health of Gardens, and kubectl wait.
package gitops

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/pkg/helm"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/schemas"
)

const root = "../../.."

// build returns the objects of a directory as kustomize renders them.
func build(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), env.Kubectl(t), "kustomize", filepath.Join(root, "example", "gitops", dir))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("kubectl kustomize %s: %v\n%s", dir, err, errOut.String())
	}
	return parse(t, out.Bytes())
}

func parse(t *testing.T, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range schemas.Documents(content) {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

func id(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// What is applied is valid, and the same as in the examples without a tool.
func TestTrees(t *testing.T) {
	all := schemas.Compile(t)
	for dir, tc := range map[string]struct{ example, kind string }{
		"extensions": {"extension.yaml", "Extension"}, "garden": {"garden.yaml", "Garden"}, "seeds": {"gardenlet.yaml", "Gardenlet"},
	} {
		t.Run(dir, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(root, "example", "operator", tc.example))
			if err != nil {
				t.Fatal(err)
			}
			want, got, checked := map[string]any{}, map[string]any{}, ""
			for _, object := range parse(t, content) {
				if object.GetKind() == "Gardenlet" {
					object.SetLabels(nil) // with the label for automatic updates, Git and the operator would change each other's reference to the chart
				}
				want[id(object)] = object.Object
			}
			for _, object := range build(t, dir) {
				got[id(object)] = object.Object
				data, err := yaml.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				known, err := all.Check(data)
				if err != nil {
					t.Errorf("%s: %v", id(object), err)
				}
				if known {
					checked = object.GetKind()
				}
			}
			if checked != tc.kind {
				t.Errorf("no %s is checked", tc.kind)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("it differs from example/operator/%s (-want +got):\n%s", tc.example, diff)
			}
		})
	}
}

// Each Kustomization of Flux applies an existing directory, after others that exist, and the release finds its chart and its values.
func TestReferences(t *testing.T) {
	kustomizations, namespaces := map[string]*unstructured.Unstructured{}, map[string]bool{"flux-system": true}
	for _, object := range build(t, "flux") {
		if object.GetKind() == "Namespace" {
			namespaces[object.GetName()] = true
			continue
		}
		kustomizations[object.GetNamespace()+"/"+object.GetName()] = object
	}
	var order []string
	for name, next := "", "flux-system/gardener-operator"; next != ""; {
		name, next = next, ""
		order = append(order, name)
		for other, object := range kustomizations {
			list, _, _ := unstructured.NestedSlice(object.Object, "spec", "dependsOn")
			for _, entry := range list {
				on := entry.(map[string]any)
				namespace, ok := on["namespace"].(string)
				if !ok {
					namespace = object.GetNamespace()
				}
				if namespace+"/"+on["name"].(string) == name {
					next = other
				}
			}
		}
	}
	if diff := cmp.Diff([]string{"flux-system/gardener-operator", "flux-system/gardener-extensions", "flux-system/garden", "garden/seeds"}, order); diff != "" || len(order) != len(kustomizations) {
		t.Errorf("the order of %d Kustomizations (-want +got):\n%s", len(kustomizations), diff)
	}
	for name, object := range kustomizations {
		if !namespaces[object.GetNamespace()] { // Flux would apply none of them
			t.Errorf("%s is in a namespace that is not in the same directory", name)
		}
		path, _, _ := unstructured.NestedString(object.Object, "spec", "path")
		if _, err := os.Stat(filepath.Join(root, "example", "gitops", path, "kustomization.yaml")); err != nil {
			t.Errorf("%s applies %q: %v", name, path, err)
		}
		if prune, _, _ := unstructured.NestedBool(object.Object, "spec", "prune"); prune == (name == "flux-system/garden" || name == "garden/seeds") {
			t.Errorf("%s has prune: %t", name, prune)
		}
		// A changed Extension is observed when the Garden is Succeeded. If the garden waited for it, a commit that repairs the Garden would never be applied.
		if wait, _, _ := unstructured.NestedBool(object.Object, "spec", "wait"); wait == (name == "flux-system/gardener-extensions") {
			t.Errorf("%s has wait: %t", name, wait)
		}
	}

	objects := map[string]*unstructured.Unstructured{}
	for _, object := range build(t, "operator") {
		objects[id(object)] = object
	}
	release := objects["HelmRelease garden/gardener-operator"]
	if release == nil {
		t.Fatalf("there are %v", objects)
	}
	kind, _, _ := unstructured.NestedString(release.Object, "spec", "chartRef", "kind")
	name, _, _ := unstructured.NestedString(release.Object, "spec", "chartRef", "name")
	repository := objects[kind+" garden/"+name]
	if repository == nil {
		t.Fatalf("the release has the chart of %s %q, which is missing", kind, name)
	}
	url, _, _ := unstructured.NestedString(repository.Object, "spec", "url")
	if !strings.HasSuffix(url, "/charts/"+charts.Operator) {
		t.Errorf("the chart is %s", url)
	}
	from, _, _ := unstructured.NestedSlice(release.Object, "spec", "valuesFrom")
	if len(from) != 1 {
		t.Fatalf("values are from %v", from)
	}
	reference := from[0].(map[string]any)
	configMap := objects[fmt.Sprintf("%s garden/%s", reference["kind"], reference["name"])]
	if configMap == nil {
		t.Fatalf("the release has values of %v, which is missing", reference)
	}
	text, _, _ := unstructured.NestedString(configMap.Object, "data", "values.yaml")
	values := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil || len(values) == 0 {
		t.Fatalf("values are %v: %v", values, err)
	}
	archive, err := charts.Archive(charts.Operator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := helm.Render(archive, helm.Release{Name: release.GetName(), Namespace: release.GetNamespace(), Values: values}); err != nil {
		t.Errorf("the chart refuses the values: %v", err)
	}
}

// health is what tools without expressions (kstatus) see in a custom resource: its generation, and conditions that it does not have here.
func health(object *unstructured.Unstructured) string {
	if object.GetDeletionTimestamp() != nil {
		return "Terminating"
	}
	if observed, ok, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); ok && observed != object.GetGeneration() {
		return "InProgress"
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		condition := entry.(map[string]any)
		switch typ, status := condition["type"], condition["status"]; {
		case typ == "Reconciling" && status == "True", typ == "Ready" && status != "True":
			return "InProgress"
		case typ == "Stalled" && status == "True":
			return "Failed"
		}
	}
	return "Current"
}

// The expressions of the Kustomizations wait for what tools do not see by themselves.
func TestHealth(t *testing.T) {
	expressions := map[string]string{}
	for _, object := range build(t, "flux") {
		list, _, _ := unstructured.NestedSlice(object.Object, "spec", "healthCheckExprs")
		for _, entry := range list {
			check := entry.(map[string]any)
			expressions[check["kind"].(string)] = check["current"].(string)
		}
	}
	const succeeded = "lastOperation: {state: Succeeded}"
	for name, tc := range map[string]struct {
		kind, status, tools string
		current             bool
	}{
		"a new Garden":                         {kind: "Garden", status: "{}", tools: "Current"},
		"a Garden of which a part is observed": {kind: "Garden", status: "{observedGeneration: 2}", tools: "Current"},
		"a Garden in progress":                 {kind: "Garden", status: "{observedGeneration: 2, lastOperation: {state: Processing}, conditions: [{type: VirtualComponentsHealthy, status: 'True'}]}", tools: "Current"},
		"a changed Garden":                     {kind: "Garden", status: "{observedGeneration: 1, " + succeeded + ", conditions: [{type: VirtualComponentsHealthy, status: 'True'}]}", tools: "InProgress"},
		"a Garden without conditions":          {kind: "Garden", status: "{observedGeneration: 2, " + succeeded + ", conditions: []}", tools: "Current"},
		"an unhealthy Garden": {
			kind: "Garden", tools: "Current",
			status: "{observedGeneration: 2, " + succeeded + ", conditions: [{type: VirtualComponentsHealthy, status: 'True'}, {type: RuntimeComponentsHealthy, status: Progressing}]}",
		},
		"a Garden": {kind: "Garden", status: "{observedGeneration: 2, " + succeeded + ", conditions: [{type: VirtualComponentsHealthy, status: 'True'}]}", tools: "Current", current: true},
		"a Garden whose gardenlets are held back, and whose CAs expire in a year": {
			kind: "Garden", tools: "Current", current: true,
			status: "{observedGeneration: 2, " + succeeded + ", conditions: [{type: VirtualComponentsHealthy, status: 'True'}, " +
				"{type: GardenletsUpdated, status: 'False'}, {type: CACertificateValiditiesAcceptable, status: 'False'}]}",
		},
		"a new Gardenlet":                {kind: "Gardenlet", status: "{}", tools: "Current"},
		"a Gardenlet that is deployed":   {kind: "Gardenlet", status: "{observedGeneration: 2, conditions: [{type: SeedRegistered, status: Progressing}]}", tools: "Current"},
		"a Gardenlet with a Seed":        {kind: "Gardenlet", status: "{observedGeneration: 2, conditions: [{type: SeedRegistered, status: 'True'}]}", tools: "Current", current: true},
		"a Gardenlet that is redeployed": {kind: "Gardenlet", status: "{observedGeneration: 1, conditions: [{type: SeedRegistered, status: 'True'}]}", tools: "InProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"kind": tc.kind, "metadata": map[string]any{"name": "a", "generation": int64(2)}}}
			status := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.status), &status); err != nil {
				t.Fatal(err)
			}
			if generation, ok := status["observedGeneration"].(float64); ok {
				status["observedGeneration"] = int64(generation)
			}
			object.Object["status"] = status
			tools := health(object)
			if tools != tc.tools {
				t.Errorf("tools see %s, want %s", tools, tc.tools)
			}
			current, err := evaluate(expressions[tc.kind], object.Object)
			if err != nil {
				t.Fatal(err)
			}
			// An old generation is not evaluated.
			if got := current && tools == "Current"; got != tc.current {
				t.Errorf("the expression says %t, want %t", got, tc.current)
			}
		})
	}
}

// evaluate evaluates an expression over the fields of an object.
func evaluate(expression string, object map[string]any) (bool, error) {
	environment, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		return false, err
	}
	parsed, issues := environment.Compile(expression)
	if issues.Err() != nil {
		return false, issues.Err()
	}
	program, err := environment.Program(parsed)
	if err != nil {
		return false, err
	}
	value, _, err := program.Eval(object)
	if err != nil {
		return false, err
	}
	result, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("%s is no boolean", value)
	}
	return result, nil
}

// The commands of the documents wait for a Garden, and end when it is as they say.
func TestWait(t *testing.T) {
	kubectl := env.Kubectl(t)
	commands := waits(t, "docs/install.md", "docs/gitops.md")
	if len(commands) < 4 {
		t.Fatalf("the documents have only %d commands", len(commands))
	}
	e := env.Start(t, env.Lenient())
	if err := errors.Join(apiextensionsv1.AddToScheme(e.Scheme), operatorv1alpha1.AddToScheme(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Operator()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"extensions", "garden", "seeds"} {
		for _, object := range build(t, dir) {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatalf("create %s: %v", id(object), err)
			}
		}
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := e.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	wait := func(arguments []string, timeout string) (string, error) {
		arguments = append(arguments[:len(arguments):len(arguments)], "--kubeconfig="+kubeconfig, "--timeout="+timeout)
		out, err := exec.CommandContext(t.Context(), kubectl, arguments...).CombinedOutput()
		return string(out), err
	}
	for _, command := range commands {
		if out, err := wait(command, "1ms"); err == nil {
			t.Errorf("kubectl %s ends at once: %s", strings.Join(command, " "), out)
		}
	}
	condition := func(typ corev1beta1.ConditionType) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now()}
	}
	env.EditStatus(t, c, env.Named[*operatorv1alpha1.Garden]("", "garden"), func(g *operatorv1alpha1.Garden) {
		g.Status.ObservedGeneration = g.Generation
		g.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now()}
		g.Status.Conditions = []corev1beta1.Condition{condition(operatorv1alpha1.VirtualComponentsHealthy), condition(operatorv1alpha1.RuntimeComponentsHealthy)}
	})
	env.EditStatus(t, c, env.Named[*operatorv1alpha1.Extension]("", "provider-local"), func(x *operatorv1alpha1.Extension) {
		x.Status.Conditions = []corev1beta1.Condition{condition(operatorv1alpha1.ExtensionInstalled)}
	})
	gardenlet := &unstructured.Unstructured{}
	gardenlet.SetAPIVersion("seedmanagement.gardener.cloud/v1alpha1")
	gardenlet.SetKind("Gardenlet")
	gardenlet.SetNamespace("garden")
	gardenlet.SetName("first")
	now := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
	if err := c.Status().Patch(t.Context(), gardenlet, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil,
		`{"status":{"conditions":[{"type":"SeedRegistered","status":"True","reason":"a","message":"b","lastTransitionTime":%q,"lastUpdateTime":%q}]}}`, now, now))); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		if out, err := wait(command, "1m"); err != nil {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
}

// waits returns the arguments of all commands "kubectl wait" in documents, without timeouts and kubeconfigs.
func waits(t *testing.T, documents ...string) [][]string {
	t.Helper()
	var all [][]string
	for _, document := range documents {
		content, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^kubectl (.*\bwait .*)$`).FindAllStringSubmatch(string(content), -1) {
			line, _, _ := strings.Cut(match[1], " #")
			line = regexp.MustCompile(`--(timeout|kubeconfig)[= ]\S+`).ReplaceAllString(line, "")
			all = append(all, strings.Fields(strings.ReplaceAll(line, "'", "")))
		}
	}
	return all
}
