/**
 * The runbook (`docs/how-to/runbook.md`) within Grafana: a board with one text panel per section, so that
 * links from other boards work in every Grafana without an address of the documentation.
 */
import { readFileSync } from 'node:fs'
import { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard'
import { PanelBuilder, TextMode } from '@grafana/grafana-foundation-sdk/text'
import { BOARDS } from './links.js'
import { addRows } from './rows.js'

/** A section of the runbook: what one alert means and what to do. */
export interface Section {
  /** A level-3 heading: the name of the alert in words. */
  readonly heading: string
  /** The level-2 heading above it. */
  readonly chapter: string
  /** Markdown, without the heading. */
  readonly text: string
}

const FILE = 'docs/how-to/runbook.md'

/** The sections in order. Throws if the file cannot be read. */
export function runbookSections(markdown = readFileSync(FILE, 'utf8')): Section[] {
  const sections: Section[] = []
  let chapter = ''
  for (const part of markdown.split(/^(?=##)/m)) {
    const [line = '', ...rest] = part.split('\n')
    const text = rest.join('\n').trim()
    if (line.startsWith('### ')) sections.push({ heading: line.slice(4).trim(), chapter, text })
    else if (line.startsWith('## ')) chapter = line.slice(3).trim()
  }
  return sections
}

const SECTIONS = runbookSections()
/** The chapters in order; the sections of a chapter follow each other. */
const CHAPTERS = [...new Set(SECTIONS.map(({ chapter }) => chapter))]

/** The address of a section within Grafana. Throws if the runbook has no such heading. */
export function runbookUrl(heading: string): string {
  const at = SECTIONS.findIndex((section) => section.heading === heading)
  if (at === -1) throw new Error(`${FILE} has no section "${heading}"`)
  return `/d/${BOARDS.Runbook}?viewPanel=${panelId(at)}`
}

/** Panels and the rows of the chapters share the ids from 1 on. */
function panelId(index: number): number {
  const { chapter } = SECTIONS[index] ?? { chapter: '' }
  return index + 1 + CHAPTERS.indexOf(chapter) + 1
}

/** Links between documents do not work within Grafana: their text stays. */
function withoutLinks(markdown: string): string {
  return markdown.replace(/\[([^\]\n]+)\]\([^)\n]+\)/g, '$1')
}

/** The board. */
export function runbookBoard(): DashboardBuilder {
  const board = new DashboardBuilder('Sluice / Runbook')
    .uid(BOARDS.Runbook)
    .description('What each alert means, what to look at and what to do. From docs/how-to/runbook.md.')
    .tags(['sluice'])
    .readonly()
    .time({ from: 'now-1h', to: 'now' })
  addRows(
    board,
    CHAPTERS.map((chapter) => ({
      title: chapter,
      panels: SECTIONS.filter((section) => section.chapter === chapter).map(panelOf),
    })),
  )
  return board
}

function panelOf({ heading, text }: Section): PanelBuilder {
  return new PanelBuilder()
    .title(heading)
    .description(`The alert "${heading}".`)
    .mode(TextMode.Markdown)
    .content(withoutLinks(text))
    .span(12)
    .height(9)
}
