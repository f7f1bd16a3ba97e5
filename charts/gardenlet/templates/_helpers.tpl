{{- define "gardenlet.labels" -}}
app: gardener
role: gardenlet
{{- end -}}

{{- define "gardenlet.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if .Values.image.ref -}}
{{ .Values.image.ref }}
{{- else -}}
{{ .Values.image.repository }}{{ if hasPrefix "sha256:" $tag }}@{{ else }}:{{ end }}{{ $tag }}
{{- end -}}
{{- end -}}

{{- define "gardenlet.serviceAccount" -}}
{{ .Values.serviceAccountName | default "gardenlet" }}
{{- end -}}

{{- /* The name of a cluster-scoped object. */ -}}
{{- define "gardenlet.clusterRole" -}}
gardener.cloud:system:gardenlet{{ if .Values.isolateClusterResources }}:{{ .Release.Namespace }}{{ end }}
{{- end -}}

{{- /* The whole configuration, so that no setting is lost. The bootstrap kubeconfig is in a Secret. */ -}}
{{- define "gardenlet.configuration" -}}
{{- $config := omit .Values.config "apiVersion" "kind" | deepCopy -}}
{{- with $config.gardenClientConnection -}}
{{- with .bootstrapKubeconfig -}}
{{- $_ := unset . "kubeconfig" -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "gardenlet.config" -}}
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
{{ include "gardenlet.configuration" . }}
{{- end -}}
