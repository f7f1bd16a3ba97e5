package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPage(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"api/zoo/v1/doc.go": "// Package v1 has animals.\n//\n// +groupName=zoo.example.com\npackage v1\n",
		"api/zoo/v1/types.go": `package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/api/config/food/v1"
)

const GroupName = "zoo.example.com"

// Bear is an animal.
type Bear struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	// Spec is what it wants | needs.
	Spec BearSpec ` + "`json:\"spec\"`" + `
}

// BearSpec is a bear's mind.
type BearSpec struct {
	// Mood decides
	// what to do.
	// +optional
	// +kubebuilder:default=calm
	Mood Mood ` + "`json:\"mood,omitempty\"`" + `
	// Meals in order.
	Meals []*v1.Meal ` + "`json:\"meals\"`" + `

}

// Mood is how it feels.
type Mood string

// MoodCalm lets it sleep.
const MoodCalm Mood = "calm"

type BearList struct {
	metav1.ListMeta ` + "`json:\"metadata\"`" + `
}
`,
		"api/config/food/v1/doc.go":   "// Package v1 is food.\npackage v1\n",
		"api/config/food/v1/types.go": "package v1\n\n// Meal is eaten.\ntype Meal struct {\n\tSize int32 `json:\"size\"`\n}\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(root, ""); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs/reference/api/zoo-v1.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := note + `# zoo.example.com/v1

This has animals.

Kinds: [Bear](#bear)

## Bear

Bear is an animal.

| field | type | |
|---|---|---|
| ''apiVersion'' | string | ''zoo.example.com/v1'' |
| ''kind'' | string | ''Bear'' |
| ''spec'' | [BearSpec](#bearspec) | Spec is what it wants \| needs. Required. |

## BearSpec

BearSpec is a bear's mind.

| field | type | |
|---|---|---|
| ''mood'' | [Mood](#mood) | Mood decides what to do. Default: ''calm''. |
| ''meals'' | list of [Meal](../config/food-v1.md#meal) | Meals in order. Required. |

## Mood

Mood is how it feels.

Is written as string.

| value | |
|---|---|
| ''calm'' | MoodCalm lets it sleep. |
`
	if diff := cmp.Diff(strings.ReplaceAll(want, "''", "`"), string(got)); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}

func TestListed(t *testing.T) {
	for name, tc := range map[string]struct {
		text, heading string
		want          []string
	}{
		"subcommands": {
			"Usage:\n  x\n\nAvailable Commands:\n  completion  For shells\n  up          Come up\n  help        Help\n\nFlags:\n  -h\n",
			"Available Commands:",
			[]string{"up"},
		},
		"components":   {"Examples:\n  gardener a\n\nComponents:\n  a   Do one thing\n  bc  Do another\n", "Components:", []string{"a", "bc"}},
		"none of them": {"Usage:\n  x\n", "Components:", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, listed(tc.text, tc.heading)); diff != "" {
				t.Errorf("listed() (-want +got):\n%s", diff)
			}
		})
	}
}
