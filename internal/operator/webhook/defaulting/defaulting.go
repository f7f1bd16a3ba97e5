// Package defaulting turns functions that set defaults into responses of webhooks that add only what is absent.
package defaulting

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Patch returns a patch for an object as it was sent. It adds the fields that a function sets. All others stay as the client has written them,
// also if there are shorter ways to write a quantity or a duration: clients that apply the object would otherwise see a difference for ever.
func Patch[T client.Object](raw []byte, obj T, setDefaults func(T)) admission.Response {
	before, err := toMap(obj)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	setDefaults(obj)
	after, err := toMap(obj)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	var sent map[string]any
	if err := json.Unmarshal(raw, &sent); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the object: %w", err))
	}
	addAbsent(sent, before, after)
	defaulted, err := json.Marshal(sent)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(raw, defaulted)
}

func toMap(obj any) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}

// addAbsent adds to an object what is in after, but not in before.
func addAbsent(sent, before, after map[string]any) {
	for key, value := range after {
		old, existed := before[key]
		switch value := value.(type) {
		case map[string]any:
			oldMap, _ := old.(map[string]any)
			sentMap, ok := sent[key].(map[string]any)
			if !ok {
				sentMap = map[string]any{}
			}
			addAbsent(sentMap, oldMap, value)
			// An object that is empty although it had to be created is a default too.
			if ok || len(sentMap) > 0 || !existed {
				sent[key] = sentMap
			}
		case []any:
			sentList, _ := sent[key].([]any)
			oldList, _ := old.([]any)
			if len(sentList) == 0 && len(oldList) == 0 {
				sent[key] = value
				continue
			}
			addAbsentItems(sentList, oldList, value)
		default:
			if _, set := sent[key]; !existed && (!set || sent[key] == nil) {
				sent[key] = value
			}
		}
	}
}

// addAbsentItems adds what is absent in the items of a list. Defaults do not change its length.
func addAbsentItems(sent, before, after []any) {
	if len(sent) != len(after) || len(before) != len(after) {
		return
	}
	for i := range after {
		sentItem, ok := sent[i].(map[string]any)
		if !ok {
			continue
		}
		beforeItem, _ := before[i].(map[string]any)
		if afterItem, ok := after[i].(map[string]any); ok {
			addAbsent(sentItem, beforeItem, afterItem)
		}
	}
}
