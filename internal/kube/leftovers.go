package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/pkg/kube"
)

// ApplyDeployment applies a Deployment, and removes from its pods what webhooks have added before and add no longer, such as the volume of an extension
// that the cluster has no more. Server-side apply leaves that, as it has no field manager; pods with a volume whose Secret is gone would not start.
func ApplyDeployment(ctx context.Context, c client.Client, owner string, deployment *appsv1.Deployment) error {
	now, err := kube.ApplyOne(ctx, c, owner, deployment)
	if err != nil {
		return err
	}
	applied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		return err
	}
	fields, err := ownedFields(now)
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		return nil // the server does not tell who has what
	}
	added := slices.DeleteFunc(minus(entriesOf(now.Object), entriesOf(applied)), func(e entry) bool {
		return slices.ContainsFunc(fields, e.isIn)
	})
	if len(added) == 0 {
		return nil
	}
	// Without it, webhooks add again what is still desired.
	without, err := remove(ctx, c, owner, deployment, added, client.DryRunAll)
	if apierrors.IsInvalid(err) {
		return nil // one adds something for an entry of another one that has gone
	}
	if err != nil {
		return err
	}
	left := minus(added, entriesOf(without))
	if len(left) == 0 {
		return nil
	}
	_, err = remove(ctx, c, owner, deployment, left)
	return err
}

// remove removes entries from a Deployment, and returns it as it is then.
func remove(ctx context.Context, c client.Client, owner string, deployment *appsv1.Deployment, entries []entry, options ...client.PatchOption) (map[string]any, error) {
	patch := map[string]any{}
	for _, e := range entries {
		e.addTo(patch)
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	if err := c.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, data), append(options, client.FieldOwner(owner))...); err != nil {
		return nil, fmt.Errorf("remove from Deployment %s what webhooks add no longer: %w", client.ObjectKeyFromObject(deployment), err)
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

// entry is the path to something in the pods of a Deployment that a webhook may add: a label, an annotation, a volume, a container, or what is in one.
type entry []segment

// segment is a field or, with a key, the element of a list in it whose key has the value.
type segment struct{ field, key, value string }

func (e entry) String() string { return fmt.Sprintf("%q", []segment(e)) }

// entriesOf returns the entries of a Deployment.
func entriesOf(deployment map[string]any) []entry {
	var all []entry
	template := entry{{field: "spec"}, {field: "template"}}
	for _, field := range []string{"labels", "annotations"} {
		list, _, _ := unstructured.NestedMap(deployment, "spec", "template", "metadata", field)
		for _, name := range slices.Sorted(maps.Keys(list)) {
			all = append(all, slices.Concat(template, entry{{field: "metadata"}, {field: field}, {field: name}}))
		}
	}
	pod, _, _ := unstructured.NestedMap(deployment, "spec", "template", "spec")
	add := func(object map[string]any, in entry, field, key string) (elements []map[string]any, entries []entry) {
		list, _, _ := unstructured.NestedSlice(object, field)
		for _, element := range list {
			element, _ := element.(map[string]any)
			value, _, _ := unstructured.NestedString(element, key)
			elements, entries = append(elements, element), append(entries, slices.Concat(in, entry{{field, key, value}}))
		}
		all = append(all, entries...)
		return elements, entries
	}
	in := slices.Concat(template, entry{{field: "spec"}})
	add(pod, in, "volumes", "name")
	for _, field := range []string{"initContainers", "containers"} {
		containers, entries := add(pod, in, field, "name")
		for i, container := range containers {
			add(container, entries[i], "volumeMounts", "mountPath")
			add(container, entries[i], "env", "name")
		}
	}
	return all
}

// minus returns the entries that are not among others, without what is in one of them.
func minus(entries, others []entry) []entry {
	without := map[string]bool{}
	for _, e := range others {
		without[e.String()] = true
	}
	var rest []entry
	for _, e := range entries {
		if without[e.String()] || slices.ContainsFunc(rest, func(r entry) bool { return len(r) < len(e) && slices.Equal(r, e[:len(r)]) }) {
			continue
		}
		rest = append(rest, e)
	}
	return rest
}

// ownedFields returns the fields of each manager of an object.
func ownedFields(object *unstructured.Unstructured) ([]map[string]any, error) {
	var all []map[string]any
	for _, manager := range object.GetManagedFields() {
		if manager.FieldsV1 == nil {
			continue
		}
		fields := map[string]any{}
		if err := json.Unmarshal(manager.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("read the fields of manager %q: %w", manager.Manager, err)
		}
		all = append(all, fields)
	}
	return all, nil
}

// isIn reports whether a manager has the entry or something in it.
func (e entry) isIn(fields map[string]any) bool {
	for _, s := range e {
		names := []string{"f:" + s.field}
		if s.key != "" {
			names = append(names, fmt.Sprintf("k:{%q:%s}", s.key, quoted(s.value)))
		}
		for _, name := range names {
			next, ok := fields[name].(map[string]any)
			if !ok {
				return false
			}
			fields = next
		}
	}
	return true
}

// quoted is a string as the API server writes it in a key.
func quoted(value string) string {
	out := &strings.Builder{}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // strings can be encoded
	return strings.TrimSpace(out.String())
}

// addTo adds the removal of the entry to a strategic merge patch.
func (e entry) addTo(patch map[string]any) {
	for i, s := range e {
		last := i == len(e)-1
		if s.key == "" {
			if last {
				patch[s.field] = nil
				return
			}
			if patch[s.field] == nil {
				patch[s.field] = map[string]any{}
			}
			patch = patch[s.field].(map[string]any) //nolint:forcetypeassert // it was made here
			continue
		}
		list, _ := patch[s.field].([]any)
		at := slices.IndexFunc(list, func(element any) bool { return element.(map[string]any)[s.key] == s.value }) //nolint:forcetypeassert // all were made here
		if at < 0 {
			at = len(list)
			list = append(list, map[string]any{s.key: s.value})
			patch[s.field] = list
		}
		patch = list[at].(map[string]any) //nolint:forcetypeassert // it was made here
		if last {
			patch["$patch"] = "delete"
		}
	}
}
