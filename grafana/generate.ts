/**
 * Writes `grafana/dashboards/*.json` from the boards, and the Helm chart's copy of the alerts, because Helm
 * reads no file outside of a chart: `npm run generate`. Tests compare the files with their sources.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { boardFiles } from './boards/index.js'

for (const { path, text } of boardFiles()) {
  writeFileSync(path, text)
  process.stdout.write(`${path}\n`)
}

const copy = 'deploy/helm/sluice/files/alerts.yaml'
writeFileSync(
  copy,
  `# A copy of grafana/alerts.yaml by npm run generate; do not edit.\n${readFileSync('grafana/alerts.yaml', 'utf8')}`,
)
process.stdout.write(`${copy}\n`)
