/**
 * Writes `grafana/dashboards/*.json` from the boards: `npm run generate`. A test compares the files with the
 * boards.
 */
import { writeFileSync } from 'node:fs'
import { boardFiles } from './boards/index.js'

for (const { path, text } of boardFiles()) {
  writeFileSync(path, text)
  process.stdout.write(`${path}\n`)
}
