// Package quantities finds quantities that take long.
//
// resource.Quantity computes a power of ten with the exponent of a number: when it parses a number of more than 18 digits or with a negative
// exponent, and otherwise when two quantities are compared or added. An exponent of eight digits takes half a minute, one of nine hours and
// gigabytes. Neither stops when a request ends.
package quantities

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const (
	// maxDigits and maxExponent are what a number may have that is parsed: that takes microseconds, and a body has many numbers.
	maxDigits, maxExponent = 1000, 999
	// fastDigits is up to how many digits a number with a positive exponent is parsed without computing the power.
	fastDigits = 18
	// maxScale is above any quantity that has a meaning. So is maxBits: it is stored with an exponent instead of its zeros.
	maxScale, maxBits = 100, 450

	numeric = "+-.0123456789"
)

// Excessive reports whether a quantity is so large or small that it must neither be compared nor added.
func Excessive(q resource.Quantity) bool {
	number := q.AsDec()
	return number.Scale() < -maxScale || number.Scale() > maxScale || number.UnscaledBig().BitLen() > maxBits
}

// Body returns a body whose first Read returns a BadRequest if a quantity in it would take long to parse. Longer bodies than the limit are not
// checked: it is for a reader that refuses them.
func Body(body io.ReadCloser, contentType string, limit int64) io.ReadCloser {
	return &checked{ReadCloser: body, contentType: contentType, limit: limit}
}

type checked struct {
	io.ReadCloser
	contentType string
	limit       int64
	rest        io.Reader
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	if c.rest == nil {
		data, err := io.ReadAll(io.LimitReader(c.ReadCloser, c.limit+1))
		if err != nil {
			return 0, err
		}
		if int64(len(data)) <= c.limit && Slow(data, c.contentType) {
			return 0, apierrors.NewBadRequest("a quantity may have an exponent of at most three digits, and " + strconv.Itoa(maxDigits) + " digits")
		}
		c.rest = io.MultiReader(bytes.NewReader(data), c.ReadCloser)
	}
	return c.rest.Read(p)
}

// Slow reports whether a body has a number that takes long to parse. A body that is invalid may pass: it is refused before numbers are parsed.
func Slow(data []byte, contentType string) bool {
	contentType, _, _ = strings.Cut(contentType, ";")
	isYAML := false
	switch strings.ToLower(strings.TrimSpace(contentType)) {
	case runtime.ContentTypeProtobuf:
		return SlowProtobuf(data)
	case runtime.ContentTypeYAML, string(types.ApplyYAMLPatchType):
		isYAML = true
	}
	// With a tag, a text in YAML is the base64 of what it means. UTF-16 has zeros.
	if !suspicious(data) && !(isYAML && bytes.ContainsAny(data, "!\x00")) {
		return false
	}
	if isYAML {
		var err error
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return false
		}
	}
	return inJSON(data)
}

// SlowProtobuf reports whether a message has a number that takes long to parse.
func SlowProtobuf(data []byte) bool { return suspicious(data) && inProtobuf(data) }

// suspicious reports whether a body has something that may belong to such a number, also one with escapes. One of ten commits does, too.
func suspicious(data []byte) bool {
	digits := 0
	for i, c := range data {
		switch {
		case c >= '0' && c <= '9' || c == '.':
			if digits++; digits > maxDigits {
				return true
			}
			continue
		case c == '\\' && (i+1 == len(data) || strings.IndexByte(`"\/bfnrt`, data[i+1]) < 0), hasExponent(data[i:]):
			return true
		}
		digits = 0
	}
	return false
}

// hasExponent reports whether data starts with an exponent of four digits or more.
func hasExponent(data []byte) bool {
	if data[0] != 'e' && data[0] != 'E' {
		return false
	}
	data = data[1:]
	if len(data) > 0 && (data[0] == '+' || data[0] == '-') {
		data = data[1:]
	}
	return len(data) >= 4 && len(bytes.Trim(data[:4], "0123456789")) == 0
}

// inJSON looks at all texts and numbers but those of the metadata, which has no quantities: labels and annotations have hashes.
func inJSON(data []byte) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return err == nil && inValues(data)
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return false
		}
		if key != "metadata" && inValues(value) {
			return true
		}
	}
	return false
}

func inValues(data []byte) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch value := token.(type) {
		case string:
			if slowText(value) {
				return true
			}
		case json.Number:
			if slowText(value.String()) {
				return true
			}
		}
	}
}

// inProtobuf looks for texts after their length, wherever that is: messages can be written in many ways that all decode.
func inProtobuf(data []byte) bool {
	digits := 0
	for i, c := range data {
		if c >= '0' && c <= '9' || c == '.' {
			if digits++; digits > maxDigits {
				return true
			}
			continue
		}
		digits = 0
		if !hasExponent(data[i:]) {
			continue
		}
		// The length may look like a digit.
		for start := i - 1; start > 0 && strings.IndexByte(numeric, data[start]) >= 0; start-- {
			length := uint64(0)
			for at := start - 1; at >= max(0, start-10) && (at == start-1) == (data[at] < 0x80); at-- {
				length = length<<7 | uint64(data[at]&0x7f)
				if length > uint64(i-start) && length <= uint64(min(2*maxDigits+10, len(data)-start)) && slowText(string(data[start:start+int(length)])) {
					return true
				}
			}
		}
	}
	return false
}

// slowText reports whether resource.ParseQuantity takes long for a text.
func slowText(text string) bool {
	text = strings.TrimSpace(text)
	exponent := strings.TrimLeft(text, numeric)
	digits := len(text) - len(exponent)
	if digits == 0 || exponent == "" || exponent[0] != 'e' && exponent[0] != 'E' {
		return digits > maxDigits
	}
	e, err := strconv.ParseInt(exponent[1:], 10, 64)
	used := int32(e) //nolint:gosec // ParseQuantity ignores the upper half of exponents, too
	return digits > maxDigits || err == nil && (used < -maxExponent || used > maxExponent && digits > fastDigits)
}
