select context, tool, arguments, edited_arguments, form, answer, earlier_call
from approval_subjects
where tenant_id = $1 and approval_id = $2
