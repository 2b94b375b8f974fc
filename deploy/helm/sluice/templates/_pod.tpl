{{- define "sluice.redis" -}}
{{- $secret := .Values.redis.secretRef.name -}}
{{- if and .Values.redis.url $secret -}}
{{- fail "Set either redis.url or redis.secretRef.name, not both" -}}
{{- else if $secret -}}
valueFrom:
  secretKeyRef:
    name: {{ $secret }}
    key: {{ .Values.redis.secretRef.key }}
{{- else -}}
value: {{ required "Set redis.url, or redis.secretRef.name if the address has a password" .Values.redis.url | quote }}
{{- end -}}
{{- end -}}

{{- define "sluice.pod" -}}
metadata:
  labels:
    {{- include "sluice.labels" . | nindent 4 }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "sluice.serviceAccount" . }}
  automountServiceAccountToken: false
  # The drain takes drain_ms and at most 6 s more; then the gateway has ended by itself.
  terminationGracePeriodSeconds: {{ add 10 (ceil (divf .Values.config.server.drain_ms 1000)) }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "sluice.selector" . | nindent 10 }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: sluice
      image: {{ include "sluice.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        - name: SLUICE_CONFIG
          value: /etc/sluice/config/gateway.yaml
        - name: SLUICE_REDIS_URL
          {{- include "sluice.redis" . | nindent 10 }}
        {{- range $variable, $from := .Values.env }}
        - name: {{ $variable }}
          valueFrom:
            secretKeyRef:
              name: {{ $from.name }}
              key: {{ $from.key }}
        {{- end }}
      {{- with .Values.envFrom }}
      envFrom:
        {{- range . }}
        - secretRef:
            name: {{ . }}
        {{- end }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ .Values.config.server.port }}
        - name: ops
          containerPort: {{ .Values.config.server.ops_port }}
      startupProbe:
        httpGet:
          path: /readyz
          port: ops
        periodSeconds: 1
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /healthz
          port: ops
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet:
          path: /readyz
          port: ops
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 1
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        # Folders and not single files: Kubernetes never updates a file that is mounted by subPath.
        - name: config
          mountPath: /etc/sluice/config
          readOnly: true
        {{- if .Values.secretFiles }}
        - name: secrets
          mountPath: /etc/sluice/secrets
          readOnly: true
        {{- end }}
        - name: data
          mountPath: /app/data
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: config
      configMap:
        name: {{ include "sluice.name" . }}
    {{- if .Values.secretFiles }}
    - name: secrets
      secret:
        secretName: {{ .Values.secretFiles }}
    {{- end }}
    {{- if not .Values.spool.persistent }}
    - name: data
      emptyDir:
        sizeLimit: {{ .Values.spool.size }}
    {{- end }}
    - name: tmp
      emptyDir: {}
{{- end -}}
