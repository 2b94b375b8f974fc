/**
 * `node scripts/check-release.mjs TAG` prints the release's section of CHANGELOG.md, and fails unless the tag, the
 * package and the chart have one version and the section is not empty.
 */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

const [tag = ''] = process.argv.slice(2)
const version = tag.replace(/^v/, '')
const faults = []

const versions = {
  'the tag': /^v\d+\.\d+\.\d+$/.test(tag) ? version : `${tag} (it must be vX.Y.Z)`,
  'package.json': JSON.parse(readFileSync('package.json', 'utf8')).version,
  'package-lock.json': JSON.parse(readFileSync('package-lock.json', 'utf8')).version,
  'appVersion of the chart': parse(readFileSync('deploy/helm/sluice/Chart.yaml', 'utf8')).appVersion,
}
for (const [place, found] of Object.entries(versions)) {
  if (found !== version) faults.push(`${place} is ${found}, not ${version}`)
}

/** The text below `## [VERSION] - DATE`, to the next section. */
function sectionOf(text) {
  const sections = text.split(/^(?=## \[)/m)
  const section = sections.find((each) => each.startsWith(`## [${version}] - `)) ?? ''
  return section.split('\n').slice(1).join('\n').trim()
}

const notes = sectionOf(readFileSync('CHANGELOG.md', 'utf8'))
if (notes === '') faults.push(`CHANGELOG.md has no section "## [${version}] - DATE" with a text`)
for (const fault of faults) console.error(`check-release: ${fault}`)
if (faults.length > 0) process.exit(1)
console.log(notes)
