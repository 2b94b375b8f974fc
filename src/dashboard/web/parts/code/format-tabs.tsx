/** The same request in each client format, one at a time: the line for a shell, and the body by itself. */
import { curlOf, inEachFormat, type FormatRequest } from '../../format/request-formats.js'
import type { Target } from '../../format/snippets.js'
import { CodeBlock } from '../actions/copy.js'
import { Tabs } from './tabs.js'

interface FormatTabsProps {
  readonly target: Target
  readonly request: FormatRequest
}

/** A tab for each format. */
export function FormatTabs({ target, request }: FormatTabsProps) {
  return (
    <Tabs
      label="Formats"
      tabs={inEachFormat(target, request).map((formatted) => ({
        name: formatted.name,
        content: (
          <>
            <CodeBlock what={`${formatted.name} curl`} code={curlOf(target, formatted)} />
            <CodeBlock
              what={`${formatted.name} body`}
              code={JSON.stringify(formatted.body, null, 2)}
            />
          </>
        ),
      }))}
    />
  )
}
