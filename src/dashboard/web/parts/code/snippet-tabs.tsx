/** The same call for a shell, Python and TypeScript, one at a time. */
import { curl, python, typescript, type Body, type Target } from '../../format/snippets.js'
import { CodeBlock } from '../actions/copy.js'
import { Tabs } from './tabs.js'

interface SnippetTabsProps {
  readonly target: Target
  readonly body?: Body
}

/** Three tabs of code to paste. */
export function SnippetTabs({ target, body }: SnippetTabsProps) {
  return (
    <Tabs
      label="Languages"
      tabs={[
        { name: 'curl', content: <CodeBlock what="curl" code={curl(target, body)} /> },
        { name: 'Python', content: <CodeBlock what="Python" code={python(target, body)} /> },
        {
          name: 'TypeScript',
          content: <CodeBlock what="TypeScript" code={typescript(target, body)} />,
        },
      ]}
    />
  )
}
