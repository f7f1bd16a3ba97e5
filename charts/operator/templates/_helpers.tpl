{{- define "operator.labels" -}}
app: gardener
role: operator
{{- end -}}

{{- define "operator.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if .Values.image.ref -}}
{{ .Values.image.ref }}
{{- else -}}
{{ .Values.image.repository }}{{ if hasPrefix "sha256:" $tag }}@{{ else }}:{{ end }}{{ $tag }}
{{- end -}}
{{- end -}}

{{- /* The whole configuration, so that no setting is lost. */ -}}
{{- define "operator.config" -}}
apiVersion: operator.config.gardener.cloud/v1alpha1
kind: OperatorConfiguration
{{ toYaml (omit .Values.config "apiVersion" "kind") }}
{{- end -}}
