package quantities

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	asJSON     = runtime.ContentTypeJSON
	asYAML     = runtime.ContentTypeYAML
	asProtobuf = runtime.ContentTypeProtobuf

	long = "1000000000000000000e9999999"
)

func TestExcessive(t *testing.T) {
	for text, want := range map[string]bool{
		"0": false, "100m": false, "1n": false, "64Ei": false, "1e100": false, "1e101": true, "1e29999999": true, "-1e29999999": true, "0e29999999": true,
		"1000000000000000000000e90": false, "1000000000000000000000e900": true,
		strings.Repeat("1", 100): false, strings.Repeat("1", 200): true,
	} {
		if got := Excessive(resource.MustParse(text)); got != want {
			t.Errorf("Excessive(%s) = %v", text, got)
		}
	}
}

func TestSlowText(t *testing.T) {
	for text, want := range map[string]bool{
		"":  false,
		"e": false, "e9999": false, "1": false, "1.5Gi": false, "1e3": false, "1e999": false, "-1e-999": false, "1E": false, "1e": false,
		"1e29999999": false, // parsed fast, and refused when it is decoded
		"1e-1000":    true, "+.1E-9999999": true, "1e4284967295": true, "1e-99999999999999999999": false, "1e-0000001": false,
		"100000000000000000e9999999": false, long: true, " " + long + "\n": true, "1.000000000000000000E+9999999": true, "1000000000000000000e999": false,
		strings.Repeat("1", 1000): false, strings.Repeat("1", 1001): true, strings.Repeat("1", 1001) + "Ki": true,
		"2ca1e9d8f3e94440815e1e29999999e0a4d1e29e": false, "v1.2.3-1e9999": false, "1e2999-9999": false,
	} {
		if got := slowText(text); got != want {
			t.Errorf("slowText(%q) = %v", text, got)
		}
		if want {
			continue
		}
		if took := measure(time.Second/10, func() { _, _ = resource.ParseQuantity(text) }); took > time.Second/10 {
			t.Errorf("parsing %q takes %s", text, took)
		}
	}
}

// measure returns how long a function takes. Longer than a limit, it is tried again: on a busy computer, something else may have run meanwhile.
func measure(limit time.Duration, f func()) (took time.Duration) {
	for range 5 {
		start := time.Now()
		f()
		if took = time.Since(start); took <= limit {
			break
		}
	}
	return took
}

func TestBody(t *testing.T) {
	quoted := `{"spec":{"cpu":"` + long + `"}}`
	pod := func(cpu string) string {
		data, err := (&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("42")},
		}}}}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(string(data), "\x0a\x0242", cpu, 1)
	}
	hashes := `"2ca1e9999f3e94440815e1e29999999e0a4d1e29" "1e2999" "9e012345678"`
	metadata := `{"metadata":{"labels":{"a":"12345678901234567890e1234"},"annotations":{"b":"1e-9999999","\u0063":"1e4284967295"}},"spec":{}}`
	utf16be := "\xfe\xff"
	for _, c := range utf16.Encode([]rune("cpu: '" + long + "'")) {
		utf16be += string([]byte{byte(c >> 8), byte(c)})
	}
	for name, tc := range map[string]struct {
		contentType, body string
		refused           bool
	}{
		"nothing":                        {body: ""},
		"small numbers":                  {asJSON, `{"spec":{"cpu":"1e3","memory":1e3,"gpu":"1e29999999"}}`, false},
		"a large text":                   {asJSON, quoted, true},
		"no content type":                {"", quoted, true},
		"parameters of the content type": {asJSON + "; x=" + asProtobuf, quoted, true},
		"a large number":                 {asJSON, `{"spec":{"cpu":` + long + `}}`, true},
		"a negative exponent":            {asJSON, `{"spec":{"cpu":"1e-9999999"}}`, true},
		"the second of two":              {asJSON, `{"spec":{"cpu":"1"},"metadata":{},"spec":{"cpu":"` + long + `","cpu":"1"}}`, true},
		"the first of two":               {asJSON, `{"spec":{"cpu":"` + long + `","cpu":"1"}}`, true},
		"escapes":                        {asJSON, `{"spec":{"cpu":"\u0031000000000000000000\u0065\u0039999999"}}`, true},
		"an escape after a backslash":    {asJSON, `{"spec":{"a":"\\\u0031","cpu":"1000000000000000000e\u0039999999"}}`, true},
		"harmless escapes":               {asJSON, `{"spec":{"a":"\\u0031000000000000000000e9999999","b":"\"1000000000000000000e9999999\n"}}`, false},
		"many digits":                    {asJSON, `{"spec":{"cpu":"` + strings.Repeat("1", 9999) + `Ki"}}`, true},
		"metadata":                       {asJSON, metadata, false},
		"metadata elsewhere":             {asJSON, `{"spec":{"metadata":{"cpu":"` + long + `"}},"kind":"metadata"}`, true},
		"a value that is metadata":       {asJSON, `{"kind":"metadata","spec":{"cpu":"` + long + `"}}`, true},
		"a JSON patch":                   {string(types.JSONPatchType), `[{"op":"add","path":"/spec/cpu","value":"` + long + `"}]`, true},
		"a merge patch":                  {string(types.MergePatchType), quoted, true},
		"an apply patch":                 {string(types.ApplyYAMLPatchType) + "; charset=utf-8", "spec:\n  cpu: " + long + "\n", true},
		"an apply patch of metadata":     {string(types.ApplyYAMLPatchType), metadata, false},
		"hashes in JSON":                 {asJSON, `{"spec":[` + strings.ReplaceAll(hashes, " ", ",") + `]}`, false},
		"hashes in YAML":                 {asYAML, "spec: [" + strings.ReplaceAll(hashes, " ", ",") + "]", false},
		"YAML":                           {asYAML, "spec:\n  cpu: '" + long + "'\n", true},
		"YAML, capital letters":          {"Application/YAML", "spec:\n  cpu: '" + long + "'\n", true},
		"YAML, escapes":                  {asYAML, `spec: {cpu: "\x31000000000000000000e9\U000000399999999"}`, true},
		"YAML, two lines":                {asYAML, "spec:\n  cpu: \"1000000000000\\\n    000000e9999999\"\n", true},
		"YAML, base64":                   {asYAML, "spec:\n  cpu: !!binary " + base64.StdEncoding.EncodeToString([]byte(long)) + "\n", true},
		"YAML, another tag":              {asYAML, "%TAG !x! tag:yaml.org,2002:\n---\nspec:\n  cpu: !x!binary " + base64.StdEncoding.EncodeToString([]byte(long)) + "\n", true},
		"YAML in UTF-16":                 {asYAML, utf16be, true},
		"protobuf":                       {asProtobuf, pod("\x0a\x02" + "42"), false},
		"protobuf, large":                {asProtobuf, pod("\x0a\x1b" + long), true},
		"protobuf, a length of digits":   {asProtobuf, pod("\x0a0" + "1000000000000000000000000000000000000000e9999999"), true},
		"protobuf, then a digit":         {asProtobuf, pod("\x0a\x1b" + long + "2"), true},
		"protobuf, another length":       {asProtobuf, pod("\x0a\x9b\x80\x80\x00" + long), true},
		"protobuf, a longer length":      {asProtobuf, pod("\x0a\x9b\x80\x80\x80\x80\x80\x80\x80\x80\x02" + long), true},
		"protobuf, many digits":          {asProtobuf, pod("\x0a\x02" + strings.Repeat("1", 9999)), true},
		"protobuf, hashes":               {asProtobuf, pod("\x0a\x2b" + "12345678901234567890e123499999999999999999a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			for how, reader := range map[string]io.Reader{
				"at once": strings.NewReader(tc.body), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.body)),
			} {
				got, err := io.ReadAll(Body(io.NopCloser(reader), tc.contentType, 1<<20))
				if apierrors.IsBadRequest(err) != tc.refused || !tc.refused && (err != nil || string(got) != tc.body) {
					t.Errorf("%s: %q was read, error %v", how, got, err)
				}
			}
		})
	}
}

// Where the number is, and how long, does not matter.
func TestEveryLength(t *testing.T) {
	for digits := 19; digits < 300; digits++ {
		cpu := strings.Repeat("1", digits) + "e9999999"
		for name, prefix := range map[string]string{"a name": "12", "nothing": "", "a hash": "1e29999999"} {
			message := &metav1.LabelSelectorRequirement{Key: prefix, Values: []string{cpu, prefix}}
			data, err := message.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if !Slow(data, asProtobuf) || !Slow(fmt.Appendf(nil, `{"a":{"%s":["%s"]}}`, prefix, cpu), asJSON) {
				t.Errorf("%d digits after %s pass", digits, name)
			}
		}
	}
}

func TestLargeBodies(t *testing.T) {
	body := `{"cpu":"` + long + `"}`
	got, err := io.ReadAll(Body(io.NopCloser(strings.NewReader(body)), asJSON, int64(len(body))-1))
	if diff := cmp.Diff(body, string(got)); err != nil || diff != "" {
		t.Errorf("a larger body than the limit is read otherwise: %v, %s", err, diff)
	}
	if _, err := Body(io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), asJSON, 10).Read(nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("another error is %v", err)
	}
	for name, text := range map[string]string{"digits": "1", "exponents": "1e1111", "exponents after lengths": "9991e-1", "backslashes": `\u0031`, "negative exponents": `"1e-999",`} {
		data := []byte(strings.Repeat(text, 3<<20/len(text)))
		for _, contentType := range []string{asJSON, asProtobuf} {
			if took := measure(2*time.Second, func() { Slow(data, contentType) }); took > 2*time.Second {
				t.Errorf("%s in %s take %s", name, contentType, took)
			}
		}
	}
}

// A change of the library may make other numbers slow.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1e-1000", "1e4284967295", long, "1.5Gi", "0e1", strings.Repeat("1", 1001)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if slowText(text) {
			return
		}
		if took := measure(time.Second, func() { _, _ = resource.ParseQuantity(text) }); took > time.Second {
			t.Errorf("parsing takes %s", took)
		}
	})
}
