/** Puts a variable of an environment. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { announce } from "../components/status.js";
import { fragment, h, tags, useState } from "../ui.js";

const { code, p } = tags;

/** @param {{ begun: { environment: string, name: string, value: string }, isFixed?: boolean, onClose: () => void, onPut: (environment: string) => void }} props `isFixed`: the environment is not asked for */
export function PutVariable({ begun, isFixed = false, onClose, onPut }) {
  const [environment, setEnvironment] = useState(begun.environment);
  const [name, setName] = useState(begun.name);
  const [value, setValue] = useState(begun.value);
  return h(FormDialog, {
    title: begun.name ? `Another value for ${begun.name}` : "Put a variable",
    act: "Put it",
    isReady: Boolean(environment.trim() && name.trim()),
    onClose,
    onSubmit: async () => {
      await api.environments.variables.put(environment.trim(), name.trim(), { value });
      announce("The value stands");
      onPut(environment.trim());
    },
    fields: (error) =>
      fragment(
        isFixed ? null : h(Field, { label: "Environment", hint: "Flows read the one that the server serves (SVC_ENVIRONMENT).", value: environment, onInput: setEnvironment, isRequired: true, isMono: true, most: 100, autoComplete: "off", error: faultAt(error, "environment") }),
        begun.name ? p(null, "Runs that were created before keep the value of ", code(null, begun.name), " that stands now.") : h(Field, { label: "Name", hint: "Letters, digits and underscores, such as API_URL. No secret of the environment has it.", value: name, onInput: setName, isRequired: true, isMono: true, most: 128, autoComplete: "off", error: faultAt(error, "name", "already-exists") }),
        h(Field, { label: "Value", isRequired: false, hint: "No secret: every member of the tenant sees it.", value, onInput: setValue, isMono: true, lines: 3, autoComplete: "off", error: faultAt(error, "value") }),
      ),
  });
}
